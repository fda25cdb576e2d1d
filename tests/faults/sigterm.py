"""SIGTERM, and SIGINT half of the time, at a random moment of beginning, compiling, training or testing a run.

It must leave with 143 or 130, its last line saying what is saved and with which command to go on; nothing may be lost,
which is that the newest checkpoint is that of the last row; and that very command must go on to the bits of the
uninterrupted run. Every seventh time a second signal follows while the first waits for a compilation: it must leave at
once, which is without finishing and saving, and the run must go on just so.
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
AIMS = ("train", "test", "begin", "compile", "train", "twice", "train")  # in turn
GOES_ON = re.compile(r"\battnlab run .*$")
MISSED = "ended before it"


def run(count: int, seed: int, folder: Path) -> Count:
    """Stop `count` runs, two side by side."""
    whole = uninterrupted()
    failures, words = tried(lambda n: _case(whole, n, seed, folder / str(n)), count, seed, together=2)
    missed = words.pop(MISSED, 0)
    note = "saved, nothing lost; " + ", ".join(f"{times} {where}" for where, times in words.most_common())
    return Count(count - missed, failures, note + f"; {missed} more {MISSED}" * (missed > 0))


def _case(whole: Uninterrupted, n: int, seed: int, home: Path) -> Iterator[str]:
    """Stop one run, and let it go on by what it said. Yields what was met."""
    rng, out, aim = np.random.default_rng([seed, n]), home / "out", AIMS[n % len(AIMS)]
    number = (signal.SIGTERM, signal.SIGINT)[n % 2]
    # What has to be compiled takes long: one that is to be met there begins without.
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
    """The command that the last line names. Raises Fault where something is lost, or the line does not say so."""
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
    """Raise Fault where what stood in a compilation when a second signal came yet saved something."""
    if steps := Checkpoints(folder(out) / "checkpoints").steps():
        raise Fault(f"{number.name} twice while compiling: it trained on, to a checkpoint of {steps}")
