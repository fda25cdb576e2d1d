"""Operations that save the files of a run, small enough to be repeated thousands of times, and their checks.

A deed acts in a folder. `before` writes the files that exist before it, and `found` returns what is wrong afterwards.
With `new`, `found` requires the files that the deed writes. Otherwise it also accepts those that existed before.
"""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any, Protocol

import numpy as np

from attnlab.data.text.units import Characters
from attnlab.lab.execution.variant import write_description
from attnlab.lab.runs.run_folder import FolderError, RunFolder
from attnlab.lab.study import serialize
from attnlab.lab.study.study import Study
from attnlab.training.checkpoints import CheckpointError, Checkpoints, Keep
from tests.small import EXPERIMENT

IDENTITY = {"configuration": "00c0ffee", "data": "00facade"}
VOCABULARY = {"source": Characters().fit(["abc", "été"]).to_json(), "classes": ["!", "日"]}
ENVIRONMENT = {"jax": "0.0", "cores": 2}
RESULT = {
    "metrics": {"loss": {"mean": 0.5, "values": [0.25, 0.75]}}, "seeds": [0, 1], "metric": "loss", "higher": False,
    "diverged": [], "steps": 3,
}  # fmt: skip
MAPS = {"source": ["a", "日"], "target": ["b"], "layers": [[[[0.25, 0.75]]]]}


def state(step: int) -> dict[str, Any]:
    """Returns a state of about 120 bytes, different for each step."""
    draw = np.random.default_rng(step)
    return {
        "w": draw.normal(size=(4, 3)).astype(np.float32),
        "memory": draw.normal(size=(4, 3)).astype(np.float32),
        "key": draw.integers(2**32, size=2, dtype=np.uint32),
        "step": np.int32(step),
    }


def checkpoints(folder: Path, **more: Any) -> Checkpoints:
    """Returns the checkpoints of a run, of which the last two are kept."""
    return Checkpoints(folder, **{"keep": Keep(2, 0), "identity": IDENTITY, **more})


def rows(*steps: int) -> list[dict[str, Any]]:
    """Returns a row for each of two lanes at each step."""
    return [
        {"step": step, "seed": seed, "learning_rate": 1e-3, "loss": (seed + 1) / step}
        for step in steps
        for seed in (0, 1)
    ]


def experiment(variant: str) -> dict[str, Any]:
    """Returns the content of `experiment.json` for a variant."""
    return {"study": "tiny", "question": "?", "variant": variant, "quick": False, "experiment": {"model": variant}}


def same(one: Any, other: Any) -> bool:
    """Returns whether two trees of dictionaries and arrays are equal, bit for bit."""
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(same(one[name], other[name]) for name in one)
    if hasattr(one, "dtype"):
        one, other = np.asarray(one), np.asarray(other)
        return (one.dtype, one.shape, one.tobytes()) == (other.dtype, other.shape, other.tobytes())
    return one == other


class Deed(Protocol):
    """An operation that saves something. `error` is the exception that it must raise if it fails."""

    error: type[Exception] = FolderError

    def before(self, folder: Path) -> None: ...
    def do(self, folder: Path) -> None: ...
    def found(self, folder: Path, new: bool) -> list[str]: ...


class Save(Deed):
    """Saves the checkpoint after the newest one. The oldest of the three is removed."""

    error = CheckpointError

    def before(self, folder: Path) -> None:
        for step in (1, 2):
            checkpoints(folder).save(step, state(step), {"seconds": step})

    def do(self, folder: Path) -> None:
        last = max(checkpoints(folder).steps())
        checkpoints(folder).save(last + 1, state(last + 1), {"seconds": last + 1})

    def found(self, folder: Path, new: bool) -> list[str]:
        wrong: list[str] = []
        kept = checkpoints(folder, note=wrong.append)
        last = max(kept.steps())
        # The checkpoint before the newest must be valid, too, because a resume falls back to it.
        for step in range(max(last - 1, 2), last + 1):
            values, facts = kept.read(step, state(0))
            if not same(values, state(step)) or facts != {"seconds": step}:
                wrong.append(f"step {step} holds other values")
        if (new and last < 3) or kept.restore(state(0))[0] != last:  # pyright: ignore[reportOptionalSubscript]
            wrong.append(f"step {last} is the newest")
        if new and (left := {path.name for path in folder.iterdir()} - {str(last), str(last - 1)}):
            wrong.append(f"{min(left)} is left behind")
        return wrong


class Write(Deed):
    """Writes a JSON file of a run in place of an older one."""

    old, new = {**RESULT, "steps": 2}, RESULT

    def before(self, folder: Path) -> None:
        RunFolder(folder).write("experiment", experiment("softmax"))
        RunFolder(folder).write("result", self.old)

    def do(self, folder: Path) -> None:
        RunFolder(folder).write("result", self.new)

    def found(self, folder: Path, new: bool) -> list[str]:
        value = RunFolder(folder).read("result")
        return [] if value == self.new or (value == self.old and not new) else [f"result.json holds {value}"]


class Append(Deed):
    """Appends rows after those of two steps. If later rows exist, removes them first."""

    def before(self, folder: Path) -> None:
        RunFolder(folder).append_metrics(rows(1, 2))

    def do(self, folder: Path) -> None:
        if len(RunFolder(folder).metrics()) > 4:
            RunFolder(folder).truncate_metrics(2)
        RunFolder(folder).append_metrics(rows(3))

    def found(self, folder: Path, new: bool) -> list[str]:
        found, whole = RunFolder(folder).metrics(), rows(1, 2, 3)
        good = found == whole or (not new and found == whole[: len(found)] and len(found) >= 4)
        return [] if good else [f"metrics.jsonl holds {found}"]


class Truncate(Deed):
    """Removes the rows after a step, as a resume does."""

    def before(self, folder: Path) -> None:
        RunFolder(folder).append_metrics(rows(1, 2, 3))

    def do(self, folder: Path) -> None:
        RunFolder(folder).truncate_metrics(2)

    def found(self, folder: Path, new: bool) -> list[str]:
        found = RunFolder(folder).metrics()
        return [] if found == rows(1, 2) or (found == rows(1, 2, 3) and not new) else [f"metrics.jsonl holds {found}"]


class Describe(Deed):
    """Writes the description of a run before the first step: vocabulary, environment and experiment."""

    def before(self, folder: Path) -> None:
        folder.mkdir(parents=True)

    def do(self, folder: Path) -> None:
        problem = SimpleNamespace(vocabulary=VOCABULARY, fingerprint="f", notes=())
        plan = SimpleNamespace(
            folder=RunFolder(folder), problem=problem, study=Study(EXPERIMENT, name="tiny", question="?"), order=0,
            variant="softmax", quick=False, experiment=EXPERIMENT, written=serialize.write(EXPERIMENT),
        )  # fmt: skip
        write_description(plan, "attnlab run tiny.py")  # pyright: ignore[reportArgumentType]

    def found(self, folder: Path, new: bool) -> list[str]:
        if RunFolder(folder).read("experiment") is None:
            return ["experiment.json is missing"] if new else []
        missing = [name for name in ("vocabulary", "environment") if not RunFolder(folder).read(name)]
        return [f"{name}.json is missing" for name in missing] if new else []


DEEDS: dict[str, Deed] = {
    "save": Save(), "write": Write(), "append": Append(), "truncate": Truncate(), "describe": Describe(),
}  # fmt: skip
