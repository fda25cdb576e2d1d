"""Cases in which a file of a run is removed, exchanged, cut or replaced, and the messages that must follow.

Files that the cases write get valid checksums, like the run's own files. Otherwise only damage would be reported.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import jax
import numpy as np

from attnlab.lab.runs.run_folder import RunFolder
from attnlab.lab.study.study import change
from attnlab.training.checkpoints import Checkpoints
from tests import small
from tests.faults.spoiltdata import GOOD, SPOILT
from tests.lab import unfinished
from tests.training.toy import Bigram

RUN = Path("runs/one/base")
SAMPLE = ["sample", str(RUN), "--input", "1 2"]
NEWEST, OLDER = RUN / "checkpoints" / "12", RUN / "checkpoints" / "6"
EXPERIMENT = change(small.EXPERIMENT, model=Bigram())  # this model is traced quickly


@dataclass(frozen=True)
class Case:
    """A change of the files, a command line, its exit code, and the words that its message must contain."""

    harm: Callable[[], Any]
    line: list[str]
    code: int
    words: str


def _put(path: Path, content: bytes | str | None) -> None:
    """Replaces a path by a file of these bytes, by nothing if they are None, or by a "folder" or a "loop"."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    path.unlink(missing_ok=True)
    if content == "folder":
        path.mkdir()
    elif content == "loop":
        path.symlink_to(path.name)
    elif content is not None:
        path.write_bytes(content if isinstance(content, bytes) else content.encode())


def _cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def _alter(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


def _state(name: str) -> Path:
    """Returns one of the files that orbax wrote for the newest checkpoint."""
    return next(path for path in sorted((NEWEST / "state").rglob(name)) if path.is_file())


def _write(name: str, **fields: Any) -> None:
    """Changes fields of a file of the run and updates its checksum. None removes a field."""
    run = RunFolder(RUN)
    before = run.read(name) or {}
    run.write(name, {key: value for key, value in (before | fields).items() if value is not None})


def _configure(*path: str, value: Any) -> None:
    """Changes a value in the configuration of the run. The value `...` removes it."""
    run = RunFolder(RUN)
    whole = run.read("experiment") or {}
    *above, last = path
    holder = whole["experiment"]
    for name in above:
        holder = holder[name]
    holder.pop(last, None)
    if value is not ...:
        holder[last] = value
    run.write("experiment", whole)


def _save(turn: Callable[[Any], Any], **identity: str) -> None:
    """Saves the newest checkpoint again, with a changed state or the identity of another run."""
    like = unfinished.shapes(EXPERIMENT)
    keys = jax.random.split(jax.random.key(0), 2)
    state = replace(jax.tree.map(unfinished.zeros, replace(like, key=None)), key=keys)
    Checkpoints(NEWEST.parent, identity=identity).save(12, turn(state), {})


def _data(task: str, files: dict[str, Any], name: str, words: str) -> Case:
    def harm() -> None:
        for part in ("train.txt", "valid.txt", "test.txt"):
            _put(Path(part), GOOD[task])
        for file, content in files.items():
            _put(Path(file), content)

    fields = [f"task={task}", f"task.train={name}", "task.valid=valid.txt", "task.test=test.txt"]
    more = ["task.length=8"] if task == "text" else []
    return Case(harm, ["run", "one.py", *fields, *more, "--out", "new"], 3, words)


def _step(harm: Callable[[], Any], words: str, step: str = "12") -> Case:
    return Case(harm, [*SAMPLE, "--step", step], 4, words)


def _read(harm: Callable[[], Any], words: str, code: int = 4, line: list[str] = SAMPLE) -> Case:
    return Case(harm, line, code, words)


AGAIN = ["run", "one.py"]
JSON = RUN / "experiment.json"
MANIFEST = NEWEST / "manifest.json"
narrow = lambda x: x.astype(np.float16) if x.dtype == np.float32 else x

CASES = [
    *(_data(*spoilt) for spoilt in SPOILT),
    # Checkpoints.
    _step(lambda: MANIFEST.unlink(), "12/manifest.json cannot be read: No such file"),
    _step(lambda: _put(MANIFEST, b""), "12/manifest.json cannot be read: the checksum sha256 is missing"),
    _step(lambda: _put(MANIFEST, b"{}"), "12/manifest.json cannot be read"),
    _step(lambda: _put(MANIFEST, b"\xff\xfe"), "12/manifest.json cannot be read"),
    _step(lambda: _put(MANIFEST, "folder"), "12/manifest.json cannot be read: Is a directory"),
    _step(lambda: _cut(MANIFEST), "12/manifest.json cannot be read"),
    _step(lambda: _alter(MANIFEST), "12/manifest.json cannot be read: the checksum sha256 does not match"),
    _step(lambda: shutil.copy(OLDER / "manifest.json", MANIFEST), "12 contains step 6, expected step 12"),
    _step(lambda: _state("*").unlink(), "is missing"),
    _step(lambda: shutil.rmtree(NEWEST / "state"), "is missing"),
    _step(lambda: _put(NEWEST / "state" / "more", b"x"), "12/state/more is unexpected"),
    _step(lambda: _cut(_state("_METADATA")), "12/state/_METADATA was altered"),
    _step(lambda: _alter(_state("manifest.ocdbt")), "manifest.ocdbt was altered"),
    _step(lambda: _save(lambda x: jax.tree.map(narrow, x)), "another state"),
    _step(
        lambda: _save(lambda x: replace(x, diverged_step=x.diverged_step[:1])),
        "12 has another state: .diverged_step is",
    ),
    _step(lambda: _save(lambda x: x, configuration="0" * 64), "12 belongs to another run: its configuration differs"),
    _step(lambda: _save(lambda x: x, data="0" * 64), "12 belongs to another run: its data differs"),
    _step(lambda: _put(NEWEST, "folder"), "12/manifest.json cannot be read: No such file"),
    _step(lambda: _put(NEWEST, b"x"), "12/manifest.json cannot be read: Not a directory"),
    _step(lambda: _put(NEWEST, "loop"), "12"),
    _step(lambda: NEWEST.rename(NEWEST.with_name(".12.growing")), "has no checkpoint of step 12; saved steps: 6"),
    _step(lambda: None, "has no checkpoint of step 7; saved steps: 6, 12", "7"),
    _step(lambda: None, "has no checkpoint of step 120", "120"),
    _read(lambda: [_cut(place / "manifest.json") for place in (OLDER, NEWEST)], "no checkpoint in "),
    _read(lambda: shutil.rmtree(NEWEST.parent), "base is finished but has no checkpoints left"),
    _read(lambda: _put(NEWEST.parent, b"x"), "checkpoint"),
    # The files of a run.
    _read(lambda: JSON.unlink(), "base is not a run folder; it has no experiment.json"),
    _read(lambda: _put(JSON, b""), "experiment.json: not JSON"),
    _read(lambda: _put(JSON, b"[]"), "experiment.json: expected a JSON object, got list"),
    _read(
        lambda: _put(JSON, JSON.read_bytes().replace(b'"sha256"', b'"sum"')),
        "experiment.json: the checksum sha256 is missing",
    ),
    _read(lambda: _cut(JSON), "experiment.json: not JSON"),
    _read(
        lambda: _put(JSON, JSON.read_bytes().replace(b"small", b"smell")),
        "experiment.json: the checksum sha256 does not match",
    ),
    _read(lambda: _write("experiment", experiment=[1]), "experiment.json: the field 'experiment' must be an object"),
    _read(lambda: _write("experiment", quick=None), "experiment.json: the field 'quick' is missing"),
    _read(lambda: _write("experiment", fingerprint="0" * 64), "vocabulary.json: the checksum sha256 does not match"),
    _read(lambda: _configure("model", "name", value="mine"), "experiment.json: model='mine' is not known"),
    _read(lambda: _configure("model", "fields", "widht", value=8), "experiment.json: model.widht"),
    _read(lambda: _configure("model", "fields", "dropout", value="much"), "experiment.json: model.dropout='much' must"),
    _read(lambda: _configure("task", "fields", "seed", value=-1), "experiment.json: task.seed=-1 must be"),
    _read(lambda: _configure("train", "steps", value=0), "experiment.json: train.steps=0 must be at least 1"),
    _read(lambda: _configure("task", value=...), "experiment.json: "),
    _read(lambda: _put(RUN / "vocabulary.json", None), "vocabulary.json is missing"),
    _read(lambda: _cut(RUN / "vocabulary.json"), "vocabulary.json: not JSON"),
    _read(lambda: _put(RUN / "vocabulary.json", "folder"), "vocabulary.json: Is a directory"),
    _read(lambda: _put(RUN / "vocabulary.json", b"{}"), "vocabulary.json: the checksum sha256 is missing"),
    _read(lambda: _alter(RUN / "vocabulary.json"), "vocabulary.json"),
    _read(lambda: _put(RUN / "result.json", b"{"), "result.json: not JSON"),
    _read(lambda: _write("result", metrics=[]), "result.json: the field 'metrics' must be an object"),
    _read(lambda: _write("result", learning_rate=None), "result.json"),
    _read(
        lambda: _write("result", learning_rate=7.0), "result.json: learning_rate=7.0 is not one of the learning rates"
    ),
    _read(lambda: None, '"9" (U+0039)', 3, ["sample", str(RUN), "--input", "1 9"]),
    _read(lambda: None, "the input '' is empty", 3, ["sample", str(RUN), "--input", ""]),
    _read(lambda: _put(RUN / "result.json", b"[]"), "result.json: expected a JSON object", 4, AGAIN),
    _read(lambda: _put(RUN / "result.json", "folder"), "result.json: Is a directory", 4, AGAIN),
    _read(lambda: _cut(JSON), "experiment.json: not JSON", 4, AGAIN),
    _read(lambda: _write("experiment", fingerprint="0" * 64), "base was trained on other data", 3, AGAIN),
    _read(lambda: _put(RUN, b"x"), "base", 4, AGAIN),
    _read(lambda: _put(RUN, "loop"), "base", 4, AGAIN),
    _read(lambda: [_put(RUN / "result.json", None), _put(RUN / "lock", "folder")], "lock: Is a directory", 4, AGAIN),
    _read(lambda: [_put(RUN / "result.json", None), _cut(RUN / "vocabulary.json")], "vocabulary.json", 4, AGAIN),
    _read(lambda: shutil.rmtree("runs"), "runs contains no runs", 4, ["report", "runs"]),
    _read(lambda: _put(Path("runs"), b"x"), "runs contains no runs", 4, ["report", "runs"]),
    _read(lambda: _put(JSON, None), "contains no runs", 4, ["report", "runs/one"]),
    _read(lambda: shutil.rmtree(NEWEST.parent), "is finished but has no checkpoints left", 4, ["inspect", *SAMPLE[1:]]),
    _read(lambda: _cut(JSON), "experiment.json: not JSON", 4, ["translate", str(RUN)]),
]


def make() -> None:
    """Writes a finished run with its checkpoints, without training."""
    unfinished.run(RUN, EXPERIMENT)
    RunFolder(RUN).write("result", {
        "metric": "exact_match", "higher": True, "seeds": [0, 1], "diverged": [], "steps": 12, "learning_rate": 1e-3,
        "metrics": {"exact_match": {"mean": 0.5, "low": 0.4, "high": 0.6, "values": [0.45, 0.55]}},
    })  # fmt: skip
