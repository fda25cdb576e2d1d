"""Sends SIGTERM or SIGINT at a random moment while a run starts, compiles, trains or tests.

Half of the signals are SIGINT. The run must exit with code 143 or 130. Its last line must say what is saved and which
command continues the run. Nothing may be lost: no row may be newer than the newest checkpoint. That command must
continue to the same bits as the uninterrupted run. In every seventh case, a second signal follows while the first waits
for a compilation. The run must then exit at once, without finishing or saving, and the run must continue
in the same way.
"""

from __future__ import annotations

import re
import shlex
import signal
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from attnlab.lab.runs.run_folder import RunFolder
from attnlab.training.checkpoints import Checkpoints
from tests.faults.child import Child
from tests.faults.count import Count, Fault, tried
from tests.faults.uninterrupted import Uninterrupted, command, folder, uninterrupted

FULL, SHORT = 50, 2
AIMS = ("train", "test", "begin", "compile", "train", "twice", "train")  # the phases at which cases aim, in turn
GOES_ON = re.compile(r"\battnlab run .*$")
MISSED = "ended before it"


def run(count: int, seed: int, folder: Path) -> Count:
    """Stops `count` runs, two at a time."""
    whole = uninterrupted()
    failures, words = tried(lambda n: _case(whole, n, seed, folder / str(n)), count, seed, together=2)
    missed = words.pop(MISSED, 0)
    note = "saved, nothing lost; " + ", ".join(f"{times} {where}" for where, times in words.most_common())
    return Count(count - missed, failures, note + f"; {missed} more {MISSED}" * (missed > 0))


def _case(whole: Uninterrupted, n: int, seed: int, home: Path) -> Iterator[str]:
    """Stops a run and continues it with the command that it printed. Yields the signal and its phase."""
    rng, out, aim = np.random.default_rng([seed, n]), home / "out", AIMS[n % len(AIMS)]
    number = (signal.SIGTERM, signal.SIGINT)[n % 2]
    # To be stopped before or while it compiles, a run starts without a compilation cache, so that compiling takes long.
    cache = home / "cache" if aim in ("begin", "compile", "twice") else whole.cache
    with Child(command(out), home / "log", cache) as child:
        if not whole.comes(child, "compile early" if aim == "twice" else aim, rng):
            child.ends_well()
            yield MISSED
            return
        child.hit(number)
        hasty = aim == "twice" and child.survives(rng.random() * 0.2) and not child.said("compiled the training step")
        if hasty:
            child.hit(number)
        code, lines = child.end(), child.lines() or [""]
    if code != 128 + number:
        raise Fault(f"{number.name} in {aim}: exit {code}, not {128 + number}, after {lines[-1]!r}")
    if traces := [line for line in lines if line.startswith("Traceback")]:
        raise Fault(f"{number.name} in {aim}: {traces[0]}")
    if hasty:
        _check_hasty(number, out)
    again = command(out) if hasty else _check_saved(number, lines[-1], out)
    with Child(again, home / "again", whole.cache) as child:
        child.ends_well()
        if child.said("skipped: checkpoint"):
            raise Fault(f"{number.name} in {aim}: a checkpoint was skipped: {home / 'again'}")
    whole.compare(out)
    yield f"{number.name} in {'compile' if aim == 'twice' else aim}{', twice' * hasty}"


def _check_saved(number: signal.Signals, line: str, out: Path) -> list[str]:
    """Returns the command in the last line. Raises Fault if a step is lost or the line does not say what is saved."""
    steps = Checkpoints(folder(out) / "checkpoints").steps()
    rows = [row["step"] for row in RunFolder(folder(out)).metrics()]
    if max(rows, default=0) > max(steps, default=0):
        raise Fault(f"{number.name}: rows up to step {max(rows)}, checkpoints of {steps}: {line!r}")
    named, goes_on = re.search(r"at step (\d+)", line), GOES_ON.search(line)
    if named and int(named[1]) != steps[-1]:
        raise Fault(f"{number.name}: checkpoints of {steps}, but said {line!r}")
    if number.name not in line or goes_on is None:
        raise Fault(f"{number.name}: the last line does not say what came and how to go on: {line!r}")
    return shlex.split(goes_on[0])[1:]


def _check_hasty(number: signal.Signals, out: Path) -> None:
    """Raises Fault if a run saved a checkpoint although it was compiling when the second signal came."""
    if steps := Checkpoints(folder(out) / "checkpoints").steps():
        raise Fault(f"{number.name} twice while compiling: it trained on, to a checkpoint of {steps}")
