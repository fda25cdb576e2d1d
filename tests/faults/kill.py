"""Kills `attnlab run` with SIGKILL at random moments, a third of them inside a save, and then resumes the run.

Some runs are killed two or three times. Every row of `metrics.jsonl`, the result and every leaf of the last checkpoint
must equal those of the uninterrupted run, bit for bit. No checkpoint may be skipped, and nothing may be left behind.
The files on disk after a kill show where it fell.
"""

from __future__ import annotations

import signal
from pathlib import Path

import numpy as np

from attnlab.lab.runs.run_folder import RunFolder
from tests.faults.child import Child
from tests.faults.count import Count, Fault, tried
from tests.faults.tiny import TINY
from tests.faults.uninterrupted import Uninterrupted, command, folder, saving, uninterrupted

FULL, SHORT = 200, 5
# The phases at which cases aim, in turn. More aim at a save than must fall inside one, because some come too late.
AIMS = ("save", "end", "save", "train", "start", "save", "compile", "save", "train", "save")
TIMES = (1, 1, 1, 2, 1, 1, 3)  # the number of kills of a case, in turn


def run(count: int, seed: int, folder: Path) -> Count:
    """Kills `count` runs, two at a time."""
    whole = uninterrupted()
    failures, fell = tried(lambda n: _case(whole, n, seed, folder / str(n)), count, seed, together=2)
    inside = fell.pop("in a save", 0)
    rest = ", ".join(f"{times} {where}" for where, times in fell.most_common())
    return Count(count, failures, f"{inside} inside a save ({rest})")


def _case(whole: Uninterrupted, n: int, seed: int, home: Path) -> list[str]:
    """Kills a run, resumes it to its end, and returns where each kill fell."""
    rng, fell, out = np.random.default_rng([seed, n]), [], home
    while not fell:
        # If a run ends before its kill, the case starts another one.
        out = out / "out"
        fell = _killed(whole, n, rng, out)
    with Child(command(out), out / "log", whole.cache) as child:
        child.ends_well()
    whole.compare(out)
    for log in out.glob("log*"):
        if passed := [line for line in log.read_text().splitlines() if "skipped: checkpoint" in line]:
            raise Fault(f"{log}: {passed[0]}")
    return fell


def _killed(whole: Uninterrupted, n: int, rng: np.random.Generator, out: Path) -> list[str]:
    """Starts a run, kills it up to three times, and returns where each kill fell.

    The list is shorter if the run ends before a kill.
    """
    fell = []
    for time in range(TIMES[n % len(TIMES)]):
        aim = AIMS[n % len(AIMS)] if time == 0 else str(rng.choice(AIMS))
        # To be killed while it compiles, a run starts without a compilation cache, so that compiling takes long.
        cache = out / "cache" if aim == "compile" else whole.cache
        with Child(command(out), out / f"log-{time}", cache) as child:
            if not _comes(child, aim, whole, out, rng):
                child.ends_well()
                break
            child.hit(signal.SIGKILL)
            child.end()
            fell.append(_fell(out, (child.lines() or [""])[-1]))
    return fell


def _comes(child: Child, aim: str, whole: Uninterrupted, out: Path, rng: np.random.Generator) -> bool:
    """Waits for a random moment of the phase `aim`. Returns False if the run ends before that."""
    if aim != "save":
        return whole.comes(child, aim, rng)
    # A resumed run has few saves left.
    left = 3 if (folder(out) / "checkpoints").is_dir() else TINY.train.steps // TINY.train.save_every
    wanted, seen = int(rng.integers(left)), set()

    def growing() -> bool:
        seen.update(path.name for path in saving(out) if path.name.endswith(".growing"))
        return len(seen) > wanted

    return child.meets(growing) and child.survives(rng.random() * whole.save)


def _fell(out: Path, last: str) -> str:
    """Returns where a kill fell, as far as the files on disk and the last line of the run show it."""
    run = RunFolder(folder(out))
    if saving(out):
        return "in a save"
    if list(folder(out).glob(".*.part")):
        return "writing a file"
    if not run.file("experiment").exists():
        return "before the folder was made"
    if run.file("result").exists():
        return "after the result"
    if "compiling" in last:
        return "compiling"
    if (folder(out) / "checkpoints" / str(TINY.train.steps)).is_dir():
        return "in the test"
    return "training or evaluating" if run.file("metrics").exists() else "before the first row"
