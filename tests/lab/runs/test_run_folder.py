"""Tests of run folders after a crash, of refused files, and of values that must never be written."""

import getpass
import json
import math
import os
import socket
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import jax
import numpy as np
import pytest

from attnlab.lab.runs.run_folder import FILES, FolderError, RunFolder
from attnlab.lab.study.names import check_folder_name
from attnlab.storage import json_file
from attnlab.system.environment import environment
from attnlab.system.settings import NUMBERS

EXPERIMENT = {"study": "dates", "question": "?", "variant": "softmax", "quick": False, "experiment": {}}
RESULT = {"metrics": {}, "seeds": [0], "metric": "loss", "higher": False, "diverged": []}
MAPS = {"source": ["a"], "target": ["b"], "layers": [[[[1.0]]]]}


def row(step: int, seed: int = 0, **more):
    return {"step": step, "seed": seed, "learning_rate": 1e-3, "loss": 1 / step, **more}


@pytest.fixture
def folder(tmp_path):
    return RunFolder(tmp_path / "dates" / "softmax")


@pytest.mark.parametrize(
    ("name", "value"),
    [("experiment", EXPERIMENT), ("environment", {"jax": "0"}), ("result", RESULT), ("maps", MAPS)],
)
def test_written_files_are_read_back(folder, name, value):
    assert folder.read(name) is None
    folder.write(name, value)
    assert folder.read(name) == value
    assert os.listdir(folder.path) == [f"{name}.json"]


def test_numbers_that_are_not_finite_are_null(folder):
    folder.write("result", {**RESULT, "peak_memory": math.nan, "n": np.float32(2), "a": np.array([1, np.inf])})
    found = folder.read("result")
    assert found is not None
    assert (found["peak_memory"], found["n"], found["a"]) == (None, 2.0, [1.0, None])
    folder.append_metrics([row(1, gradient_norm=math.inf), row(2)])
    assert [line["gradient_norm"] for line in folder.metrics() if line["step"] == 1] == [None]
    assert "NaN" not in folder.file("metrics").read_text() + folder.file("result").read_text()


def test_text_of_any_script_is_kept_and_file_names_of_any_locale(folder):
    source = ["é", "日", "\u0301", "\ud800", "d\udce4.tsv"]  # the last is a name that is not valid UTF-8
    folder.write("maps", {**MAPS, "source": [*source, "d\udcc3\udca4.tsv"]})  # "dä.tsv" in an ASCII locale
    assert (folder.read("maps") or {})["source"] == [*source, "dä.tsv"]
    folder.append_metrics([row(1, note="d\udce4.tsv")])
    assert folder.metrics()[0]["note"] == "d\udce4.tsv"


def test_metrics_are_appended(folder):
    assert folder.metrics() == []
    folder.append_metrics([row(1), row(1, seed=1)])
    folder.append_metrics([row(2)])
    assert [(line["step"], line["seed"]) for line in folder.metrics()] == [(1, 0), (1, 1), (2, 0)]


def test_a_truncated_last_line_is_ignored_and_repaired(folder):
    folder.append_metrics([row(1, note="é"), row(2, note="é")])
    whole = folder.file("metrics").read_bytes()
    first = whole.index(b"\n") + 1
    for cut in range(first, len(whole)):
        folder.file("metrics").write_bytes(whole[:cut])
        steps = [1, 2] if cut == len(whole) - 1 else [1]
        assert [line["step"] for line in folder.metrics()] == steps
        folder.append_metrics([row(3)])
        assert [line["step"] for line in folder.metrics()] == [*steps, 3]


def test_truncating_drops_what_a_resumed_run_writes_again(folder):
    folder.truncate_metrics(0)
    assert not folder.file("metrics").exists()
    folder.append_metrics([row(step, seed) for step in (1, 2, 3, 4) for seed in (0, 1)])
    with folder.file("metrics").open("ab") as file:
        file.write(b'{"step": 5, "se')
    folder.truncate_metrics(2)
    folder.append_metrics([row(step, seed) for step in (3, 4, 5) for seed in (0, 1)])
    lanes = [(line["step"], line["seed"]) for line in folder.metrics()]
    assert lanes == [(step, seed) for step in (1, 2, 3, 4, 5) for seed in (0, 1)]


@pytest.mark.parametrize("broken", [b"{", b"[]", b"\xff", b'{"step": 1}', b'{"step": NaN}', b"[" * 99_999, b""])
def test_a_broken_line_before_the_last_is_named(folder, broken):
    folder.append_metrics([row(1), row(2)])
    lines = folder.file("metrics").read_bytes().splitlines()
    folder.file("metrics").write_bytes(b"\n".join([lines[0], broken, lines[1], b""]))
    with pytest.raises(FolderError, match=r"^[^\n]*metrics\.jsonl, line 2: [^\n]+$") as caught:
        folder.metrics()
    assert caught.value.exit_code == 4


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        ("", "not JSON"),
        (json.dumps(RESULT), "the checksum sha256 is missing"),
        ('{"metrics": ', "not JSON"),
        ('{"metrics": NaN}', "NaN"),
        ("[1]", "object"),
        (json.dumps({**RESULT, "metrics": "<b>"}), "'metrics' must be an object"),
        (json.dumps({**RESULT, "higher": 1}), "'higher' must be true or false"),
        (json.dumps({n: v for n, v in RESULT.items() if n != "seeds"}), "'seeds' is missing"),
    ],
)
def test_a_broken_file_is_named(folder, content, complaint):
    folder.path.mkdir(parents=True)
    folder.file("result").write_text(content)
    with pytest.raises(FolderError, match=rf"^[^\n]*result\.json: [^\n]*{complaint}"):
        folder.read("result")


@pytest.mark.parametrize("name", ["experiment", "environment", "result", "maps"])
def test_every_flipped_bit_is_detected_and_the_file_named(folder, name):
    folder.write("experiment", EXPERIMENT)
    folder.write(name, {"experiment": EXPERIMENT, "environment": {"jax": "0"}, "result": RESULT, "maps": MAPS}[name])
    whole = folder.file(name).read_bytes()
    for at in range(len(whole) - 1):  # the line end at the end of the file has no content
        folder.file(name).write_bytes(flipped(whole, at))
        with pytest.raises(FolderError, match=rf"{name}\.json: "):
            folder.read(name)


def test_every_flipped_bit_of_the_metrics_is_detected_and_the_file_named(folder):
    folder.append_metrics([row(1, note="é"), row(2)])
    whole = folder.file("metrics").read_bytes()
    for at in range(len(whole)):
        folder.file("metrics").write_bytes(flipped(whole, at))
        with pytest.raises(FolderError, match=r"metrics\.jsonl, line \d: "):
            folder.metrics()


def flipped(content, at):
    return content[:at] + bytes([content[at] ^ (1 << at % 8)]) + content[at + 1 :]


@pytest.mark.parametrize("name", ["result", "maps", "metrics"])
def test_a_file_of_another_run_is_refused(folder, tmp_path, name):
    other = RunFolder(tmp_path / "dates" / "linear")
    for run, variant in ((folder, "softmax"), (other, "linear")):
        run.write("experiment", EXPERIMENT | {"variant": variant})
        run.write("result", RESULT)
        run.write("maps", MAPS)
        run.append_metrics([row(1)])
    folder.file(name).write_bytes(other.file(name).read_bytes())
    with pytest.raises(FolderError, match="belongs to another run"):
        folder.metrics() if name == "metrics" else folder.read(name)


def test_a_lost_row_is_detected(folder):
    folder.append_metrics([row(1), row(2), row(3)])
    lines = folder.file("metrics").read_bytes().splitlines(keepends=True)
    folder.file("metrics").write_bytes(lines[0] + lines[2])
    with pytest.raises(FolderError, match=r"metrics\.jsonl, line 2: the checksum crc32 does not match"):
        folder.metrics()
    folder.file("metrics").write_bytes(lines[0] + lines[1])
    with pytest.raises(FolderError, match="rows up to step 3, the step of a checkpoint, are missing"):
        folder.truncate_metrics(3)


def test_appending_does_not_read_all_rows(folder):
    folder.append_metrics([row(1, note="x" * 100_000), row(2, note="y" * 200_000)])
    folder.append_metrics([row(3)])
    folder.append_metrics([row(4)])
    assert [line["step"] for line in folder.metrics()] == [1, 2, 3, 4]


def test_values_of_a_row_must_be_numbers(folder):
    folder.append_metrics([{**row(1), "seed": True}, row(2)])
    with pytest.raises(FolderError, match="'seed' must be a whole number"):
        folder.metrics()


def test_only_known_files_are_written_and_read(folder):
    with pytest.raises(KeyError):
        folder.write("../result", RESULT)
    assert set(FILES) == {"experiment", "vocabulary", "environment", "result", "maps", "pictures"}
    for call in (lambda: folder.write("reslt", {}), lambda: folder.read("reslt")):
        with pytest.raises(KeyError, match="'reslt' is no JSON file of a run; nearest: 'result'; known: experiment, "):
            call()
    with pytest.raises(KeyError, match=r"metrics\(\) reads metrics\.jsonl"):
        folder.read("metrics")


def test_a_crash_while_writing_leaves_the_old_file(folder, monkeypatch):
    folder.write("result", RESULT)

    def crash(*paths):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(json_file.os, "replace", crash)
    with pytest.raises(FolderError, match=r"result\.json: No space left on device"):
        folder.write("result", {**RESULT, "seeds": [0, 1]})
    assert folder.read("result") == RESULT
    assert os.listdir(folder.path) == ["result.json"]


def test_temporary_files_of_killed_processes_are_removed_and_of_running_ones_kept(tmp_path):
    with subprocess.Popen([sys.executable, "-c", ""]) as gone:
        pass
    for name in (f".result.json.{gone.pid}.part", f"vocabulary.json.{gone.pid}.part", "my.part", "table.csv"):
        (tmp_path / name).write_text("{")
    (tmp_path / f".maps.json.{os.getpid()}.part").write_text("{")
    json_file.sweep(tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == {"my.part", "table.csv", f".maps.json.{os.getpid()}.part"}


def test_a_failed_fsync_is_reported(folder, monkeypatch):
    def fail(handle):
        raise OSError(5, "Input/output error")

    folder.write("environment", {})
    monkeypatch.setattr(json_file.os, "fsync", fail)
    with pytest.raises(FolderError, match=r"environment\.json: Input/output error"):
        folder.write("environment", {"jax": "0"})
    assert folder.read("environment") == {}


def test_a_path_that_is_no_folder_is_named(tmp_path):
    (tmp_path / "file").write_text("")
    folder = RunFolder(tmp_path / "file")
    for attempt in (folder.metrics, lambda: folder.read("result"), lambda: folder.append_metrics([row(1)])):
        with pytest.raises(FolderError, match="file"):
            attempt()


@pytest.mark.parametrize("name", ["softmax", "gated-linear", "width 64", "日付", "x.y", "-x", "a'b"])
def test_valid_folder_names(name, tmp_path):
    (tmp_path / check_folder_name(name)).mkdir()


@pytest.mark.parametrize(
    "name",
    [
        "",
        ".",
        "..",
        ".x",
        "a/b",
        "a\\b",
        "../x",
        "a\nb",
        "a\0b",
        " x",
        "x ",
        "a:b",
        "<b>",
        "\u202ex",
        "é" * 51,
    ],
)
def test_invalid_folder_names(name):
    with pytest.raises(ValueError, match=r"^[^\n]+$"):
        check_folder_name(name)


def test_the_environment_record_has_versions_and_nothing_personal():
    found = environment()
    packages = {"attnlab", "python", "jax", "jaxlib", "flax", "optax", "numpy"}
    assert set(found) == packages | {"platform", "device", "cores", "machine", "xla_flags", *NUMBERS}
    assert json.loads(json.dumps(found)) == found
    private = {socket.gethostname(), getpass.getuser(), str(Path.home()), os.getcwd()}
    said = " ".join(str(value) for value in found.values())
    assert not [word for word in private if len(word) > 2 and word in said]
    assert os.sep not in said


@pytest.mark.parametrize(("asked", "expected"), [(None, "default"), ("float32", "float32")])
def test_the_environment_of_an_accelerator_records_matmul_precision(asked, expected, monkeypatch):
    monkeypatch.setattr(jax, "devices", lambda: [SimpleNamespace(platform="gpu", device_kind="some")])
    with jax.default_matmul_precision(asked):
        assert environment()["matmul_precision"] == expected


@pytest.mark.parametrize(("found", "reader"), [(1, "attnlab 0.1.0"), (3, "a newer attnlab"), ("x", "a newer attnlab")])
def test_a_folder_of_another_format_is_refused_with_the_version_that_reads_it(folder, found, reader):
    folder.write("experiment", EXPERIMENT)
    assert folder.read("experiment") == EXPERIMENT
    assert json.loads(folder.file("experiment").read_text())["format"] == 2
    more = {} if found == 1 else {"format": found}  # the first version wrote no number
    folder.file("experiment").write_bytes(json_file.dump_with_checksum(EXPERIMENT | more, 1, b"experiment"))
    with pytest.raises(FolderError, match=f"run folder format {found!r}, expected 2; use {reader} to read this run$"):
        folder.read("experiment")
