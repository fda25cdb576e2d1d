"""The run that nobody interrupts: what the others are compared with, bit for bit, and when things happen in it."""

from __future__ import annotations

import statistics
import tempfile
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import jax
import numpy as np

from attnlab.lab.runs.run_folder import RunFolder
from attnlab.training.checkpoints import Checkpoints
from attnlab.training.state_files import flatten
from attnlab.training.trainer import Trainer
from tests.faults.child import Child
from tests.faults.count import Fault
from tests.faults.tiny import TINY

# What differs from run to run: the clock's and the system's.
SECONDS, SYSTEM = {"seconds"}, {"compile_seconds", "seconds_per_step", "memory_bytes", "peak_memory"}


@dataclass(frozen=True)
class Uninterrupted:
    """Where it lies, what it compiled, its outcome, and the seconds after its start at which it said each line."""

    home: Any  # a temporary folder that goes with it
    outcome: dict[str, Any]
    said: list[tuple[float, str]]
    tested: float  # when its result was there
    ended: float
    save: float  # seconds that one takes

    @property
    def cache(self) -> Path:
        """What it compiled: with it others start in no time."""
        return Path(self.home.name) / "cache"

    def at(self, words: str) -> float:
        """The second of the last line that holds those words."""
        return max(second for second, line in self.said if words in line)

    def comes(self, child: Child, aim: str, rng: np.random.Generator) -> bool:
        """Wait for a random moment of what is aimed at, in another run; False where that ended before.

        "start" is all before the first compilation, "begin" that of it which it says itself to train in, "compile" and
        "train" what they say, "test" the examination after the last step, "end" that and the writing of the result and
        of the page.
        """
        compiling = self.at("compiled the training step") - self.at("compiling the training step")
        last = f"saved at step {TINY.train.steps}"
        words, seconds = {
            "start": ("", self.at("compiling the training step")),
            "begin": ("variant 1 of 1", self.at("compiling the training step") - self.at("variant 1 of 1")),
            "compile": ("compiling the training step", compiling),
            "compile early": ("compiling the training step", compiling / 2),
            "train": ("compiled the training step", self.at(last) - self.at("compiled the training step")),
            "test": (last, self.tested - self.at(last)),
            "end": (last, self.ended - self.at(last)),
        }[aim]
        return (not words or child.meets(lambda: child.said(words))) and child.survives(rng.random() * seconds)

    def compare(self, out: Path) -> None:
        """Raise Fault, naming the first of what differs, where a run was not the same, or left something behind."""
        found = outcome(out)
        for name, value in self.outcome.items():
            if differing := _difference(value, found[name]):
                raise Fault(f"{out}: {name} differ from the uninterrupted run's: {differing}")
        if left := sorted(path.name for path in folder(out).rglob(".*")):
            raise Fault(f"{out}: left behind: {', '.join(left)}")


@cache
def uninterrupted() -> Uninterrupted:
    """The run, made once a process."""
    home = tempfile.TemporaryDirectory(prefix="attnlab-uninterrupted-")
    out, said, growing, tested = Path(home.name) / "out", [], {}, []
    with Child(command(out), Path(home.name) / "log", Path(home.name) / "cache") as child:

        def watch() -> bool:
            for path in saving(out):
                growing.setdefault(path.name.split(".")[1], child.age)
            if not tested and (folder(out) / "result.json").exists():
                tested.append(child.age)
            said.extend((child.age, line) for line in child.lines()[len(said) :])
            return False

        child.meets(watch)
        child.ends_well()
        ended = child.age
    saves = [second - growing[step] for second, line in said if (step := _saved(line)) in growing]
    return Uninterrupted(home, outcome(out), said, tested[0], ended, statistics.median(saves))


def command(out: Path) -> list[str]:
    """The arguments of `attnlab`."""
    return ["run", "tests/faults/study.py", "--out", str(out)]


def folder(out: Path) -> Path:
    """The folder of the run."""
    return out / "tiny" / "base"


def saving(out: Path) -> list[Path]:
    """What is there only while a checkpoint is written or dropped."""
    checkpoints = folder(out) / "checkpoints"
    return [*checkpoints.glob(".*.growing"), *checkpoints.glob(".*.going")]


def outcome(out: Path) -> dict[str, Any]:
    """What must be the same in every run, by name: every row, the result, the page's maps, every leaf at the end."""
    run = RunFolder(folder(out))
    result = run.read("result") or {}
    return {
        "rows": [{name: row[name] for name in row.keys() - SECONDS} for row in run.metrics()],
        "results": {name: result[name] for name in result.keys() - SECONDS - SYSTEM},
        "maps": run.read("maps"),
        "states": final(folder(out)),
    }


def final(run: Path) -> dict[str, np.ndarray]:
    """The leaves of the last step's checkpoint, by path."""
    problem = TINY.task.load()
    like = jax.eval_shape(Trainer(lambda key: TINY.model.create(key, problem.shape), problem, TINY.train).start)
    return flatten(Checkpoints(run / "checkpoints").read(TINY.train.steps, like)[0])


def _saved(line: str) -> str:
    """The step of a line that says it is saved."""
    return line.rpartition("saved at step ")[2]


def _difference(value: Any, found: Any) -> str:
    """The first of what differs, in words; nothing where nothing does."""
    if isinstance(value, list):
        if len(value) != len(found):
            return f"{len(found)} of them, not {len(value)}"
        return next((text for pair in zip(value, found, strict=True) if (text := _difference(*pair))), "")
    if isinstance(value, dict):
        if value.keys() != found.keys():
            return f"the fields {sorted(value.keys() ^ found.keys())}"
        return next((f"{name}, {text}" for name in value if (text := _difference(value[name], found[name]))), "")
    same = value.tobytes() == found.tobytes() if isinstance(value, np.ndarray) else repr(value) == repr(found)
    return "" if same else f"{found!r}, not {value!r}"
