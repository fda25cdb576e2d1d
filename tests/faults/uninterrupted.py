"""The uninterrupted run, with which the others are compared bit for bit, and the times of its events."""

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

# Fields that differ from run to run: times, and values of the system.
SECONDS, SYSTEM = {"seconds"}, {"compile_seconds", "seconds_per_step", "memory_bytes", "peak_memory"}


@dataclass(frozen=True)
class Uninterrupted:
    """The folder of the run, its outcome, and each line that it printed with the seconds since its start."""

    home: Any  # a temporary folder, which is removed with this object
    outcome: dict[str, Any]
    said: list[tuple[float, str]]
    tested: float  # seconds until its result was written
    ended: float
    save: float  # median seconds of a save

    @property
    def cache(self) -> Path:
        """The compilation cache, with which other runs start quickly."""
        return Path(self.home.name) / "cache"

    def at(self, words: str) -> float:
        """Returns the seconds of the last line that contains `words`."""
        return max(second for second, line in self.said if words in line)

    def comes(self, child: Child, aim: str, rng: np.random.Generator) -> bool:
        """Waits for a random moment of the phase `aim` in another run. Returns False if that run ends before it.

        "start" is the time before the first compilation. "begin" is the part of it after the line "variant 1 of 1".
        "compile" and "train" begin with the lines about them, and "compile early" is the first half of "compile".
        "test" is the evaluation after the last step. "end" also contains the writing of the result and of the page.
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
        """Raises Fault if a run differs from this one or left temporary files behind.

        The message names the first difference.
        """
        found = outcome(out)
        for name, value in self.outcome.items():
            if differing := _difference(value, found[name]):
                raise Fault(f"{out}: {name} differ from the uninterrupted run's: {differing}")
        if left := sorted(path.name for path in folder(out).rglob(".*")):
            raise Fault(f"{out}: left behind: {', '.join(left)}")


@cache
def uninterrupted() -> Uninterrupted:
    """Returns the uninterrupted run, which each process makes once."""
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
    """Returns the arguments of `attnlab`."""
    return ["run", "tests/faults/study.py", "--out", str(out)]


def folder(out: Path) -> Path:
    """Returns the folder of the run."""
    return out / "tiny" / "base"


def saving(out: Path) -> list[Path]:
    """Returns the paths that exist only while a checkpoint is written or removed."""
    checkpoints = folder(out) / "checkpoints"
    return [*checkpoints.glob(".*.growing"), *checkpoints.glob(".*.going")]


def outcome(out: Path) -> dict[str, Any]:
    """Returns by name what must be equal in every run.

    These are the rows, the result, the maps of the page and every leaf of the final state.
    """
    run = RunFolder(folder(out))
    result = run.read("result") or {}
    return {
        "rows": [{name: row[name] for name in row.keys() - SECONDS} for row in run.metrics()],
        "results": {name: result[name] for name in result.keys() - SECONDS - SYSTEM},
        "maps": run.read("maps"),
        "states": final(folder(out)),
    }


def final(run: Path) -> dict[str, np.ndarray]:
    """Returns the leaves of the last step's checkpoint, by path."""
    problem = TINY.task.load()
    like = jax.eval_shape(Trainer(lambda key: TINY.model.create(key, problem.shape), problem, TINY.train).start)
    return flatten(Checkpoints(run / "checkpoints").read(TINY.train.steps, like)[0])


def _saved(line: str) -> str:
    """Returns the step that a line reports as saved."""
    return line.rpartition("saved at step ")[2]


def _difference(value: Any, found: Any) -> str:
    """Returns a description of the first difference, or an empty string if there is none."""
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
