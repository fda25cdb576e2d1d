"""Hostile run folders, each of which must be refused for the right reason, and the cases of hostile names."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial

import attnlab.lab
from attnlab.lab.results.outcome import outcomes
from attnlab.lab.runs.run_folder import RunFolder
from attnlab.lab.study import serialize
from attnlab.lab.study.study import Experiment, Study
from attnlab.lab.trained.load import trained
from attnlab.storage.checksum import checksum, row_with_checksum, with_checksum
from attnlab.tasks.text.text import Text
from attnlab.training import manifest
from tests.faults import hostilenames
from tests.faults.count import Fault
from tests.faults.harm import Place, refused
from tests.faults.hostilenames import Halted, run_in, shown
from tests.small import EXPERIMENT

FILES = ("experiment", "environment", "result", "maps")


def _sealed(run: RunFolder, name: str, content: bytes) -> None:
    """Replaces a file of a run by bytes with a valid checksum, because these cases do not test damage."""
    owner = b"" if name in ("experiment", "environment") else checksum(run.file("experiment").read_bytes())
    run.file(name).write_bytes(with_checksum(content, owner) + b"\n")


def nested(place: Place) -> None:
    """Checks that JSON of 100,000 nested brackets is refused in every file of a run."""
    deep = b'{"a": ' + b"[" * 100_000 + b"]" * 100_000 + b"}"
    for name in FILES[::-1]:
        run = run_in(place)
        _sealed(run, name, deep)
        refused(f"{name}.json: not JSON", run.read, name)
    run = run_in(place)
    owner = checksum(run.file("experiment").read_bytes())
    first = row_with_checksum(deep, owner)
    second = row_with_checksum(b'{"step": 1, "seed": 0, "learning_rate": 1}', first)
    run.file("metrics").write_bytes(first + b"\n" + second + b"\n")
    refused(r"metrics.jsonl, line 1: not JSON", run.metrics)
    if len(outcomes(run.path.parent)[0].troubles) != 1:
        raise Fault("what cannot be read is not told on the page")
    (run.path / "manifest.json").write_bytes(with_checksum(deep))
    refused("manifest.json", manifest.read, run.path)


def twice(place: Place) -> None:
    """Checks that JSON in which a field occurs twice is refused."""
    for name in FILES:
        run = run_in(place)
        content = run.file(name).read_bytes().rstrip()
        plain = b"{" + content[content.index(b",") + 1 :]
        _sealed(run, name, plain[:-1] + b', "seeds": [9], "seeds": [0]}')
        refused("is given twice", run.read, name)


def numbers(place: Place) -> None:
    """Checks that JSON with NaN, infinities or overlong integers is refused, and that a page shows huge numbers."""
    for said in (b"NaN", b"Infinity", b"-Infinity", b"9" * 10_000, b"-" + b"9" * 10_000):
        run = run_in(place)
        _sealed(run, "environment", b'{"cores": ' + said + b"}")
        refused("environment.json: not JSON", run.read, "environment")
    huge = 10**400
    run = run_in(place)
    result = run.read("result") or {}
    for name in ("parameters", "flops", "steps", "seconds", "memory_bytes", "state_bytes", "learning_rate"):
        result[name] = huge
    result["metrics"]["loss"] = {"mean": huge, "low": -huge, "high": huge, "values": [huge, -huge, huge]}
    run.write("result", {**result, "seeds": [huge, 1, 2], "diverged": [{"seed": huge, "step": huge}]})
    run.append_metrics([{"step": huge, "seed": huge, "learning_rate": huge, "loss": huge}])
    shown(run.path.parent)
    _sealed(run, "result", b'{"metrics": {"loss": {"values": [1e999, -1e999], "mean": 1e999}}, "metric": "loss", '
            b'"seeds": [0, 1], "higher": true, "diverged": []}')  # fmt: skip
    shown(run.path.parent)


def modules(place: Place) -> None:
    """Checks that an `experiment.json` is refused if it names modules or functions instead of registered values."""
    touch = f"__import__('pathlib').Path({str(place.canary)!r}).touch()"
    good = serialize.write(EXPERIMENT)
    score = {"registry": "builtins", "name": "eval"}
    for field, value, because in (
        ("task", {"registry": "os", "name": "system", "fields": {"command": touch}}, "registry 'os' is not known"),
        ("task", {"registry": "TASKS", "name": "os.system"}, "'os.system' is not known"),
        ("task", {"registry": "TASKS", "name": touch}, "is not known"),
        ("task", {"registry": "attnlab.tasks", "name": "TASKS"}, "is not known"),
        ("model", {"registry": "MODELS", "name": "__class__"}, "is not known"),
        ("model", {"registry": "MODELS", "name": "transformer", "fields": {"__class__": touch}}, "no field"),
        ("model", {"registry": "MODELS", "name": "transformer", "fields": {"mechanism": score}}, "'builtins'"),
        ("model", {"py/object": "os.system", "py/reduce": [touch]}, "expected an object with registry and name"),
        ("train", {"steps": {"registry": "os", "name": "getpid"}}, "is not known"),
    ):
        run = run_in(place)
        run.write("experiment", {**(run.read("experiment") or {}), "experiment": {**good, field: value}})
        refused(because, trained, run.path)


def paths(place: Place) -> None:
    """Checks that an `experiment.json` is refused if its data are devices, pipes, folders, missing or not text."""
    os.mkfifo(place.root / "pipe")
    (place.root / "sound").write_bytes(b"\xff\xfb\x90" * 1000)
    for file, because in (
        ("/dev/zero", "a pipe or a device"),
        (str(place.root / "pipe"), "a pipe or a device"),
        ("/dev/stdin", "a pipe or a device|contains no text|cannot be read"),
        (str(place.root), "Is a directory"),
        (str(place.root / "sound"), "is not UTF-8"),
        (f"{place.root}/nowhere\x1b[2J", "No such file"),
        ("a\x00b", "null|cannot be read"),
    ):
        run = run_in(place)
        fields = {"train": file, "valid": f"{place.root}/valid", "test": f"{place.root}/test"}
        task = {"registry": "TASKS", "name": "text", "fields": fields}
        written = {**serialize.write(Experiment(Text(), EXPERIMENT.model)), "task": task}
        run.write("experiment", {**(run.read("experiment") or {}), "experiment": written})
        refused(because, trained, run.path)


def links(place: Place) -> None:
    """Checks that runs, their files and their checkpoints are refused if they are links to other files, or pipes."""
    study = Study(EXPERIMENT, name="tiny")
    for n, name in enumerate((".", ".", "lock", "metrics.jsonl", "vocabulary.json", "experiment.json", "checkpoints")):
        out = place.root / f"{n}"
        path = out / "tiny" / "base" / name
        path.parent.mkdir(parents=True)
        path.symlink_to(place.folder if name in (".", "checkpoints") else place.victim)
        refused("is a symbolic link", attnlab.lab.run, study, out=out, fresh=n == 0, progress=Halted())
    for target in ("/dev/zero", "pipe"):
        for name in (*FILES, "metrics"):
            run = run_in(place)
            run.file(name).unlink()
            if target == "pipe":
                os.mkfifo(run.file(name))
            else:
                run.file(name).symlink_to(target)
            read = run.metrics if name == "metrics" else partial(run.read, name)
            refused(f"{run.file(name).name}.* pipe or a device", read)
            run.file(name).unlink()
    for target in ("/dev/zero", "pipe"):
        folder = place.root / f"checkpoint{target[0]}"
        for name, read in (
            ("manifest.json", lambda file: manifest.read(file.parent)),
            ("part", lambda file: manifest.hashes(file.parent)),
        ):
            file = folder / name.partition(".")[0] / name
            file.parent.mkdir(parents=True)
            os.mkfifo(file) if target == "pipe" else file.symlink_to(target)
            refused(f"{name}.* (pipe or a device|not a regular file)", read, file)


CASES: dict[str, Callable[[Place], None]] = {
    "JSON of 100,000 brackets": nested,
    "JSON with a field twice": twice,
    "JSON numbers beyond bounds": numbers,
    "an experiment that names modules": modules,
    "an experiment that names devices": paths,
    "links and pipes in run folders": links,
    **hostilenames.CASES,
}
