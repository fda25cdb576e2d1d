"""Tests of runs whose files or data changed after training: what is refused, and what is trained again."""

import json
import shutil
import sys
from dataclasses import replace

import pytest

from attnlab.data.io.files import DataError
from attnlab.lab import load, run
from attnlab.lab.execution.log_lines import Plain
from attnlab.lab.reporting import report
from attnlab.lab.runs.run_folder import RunFolder
from attnlab.lab.trained.sample import sample
from attnlab.storage.json_file import FolderError
from attnlab.training.checkpoints import CheckpointError
from tests.lab.small_study import ONE, QUICKLY, STUDY


def test_an_altered_checkpoint_is_refused(finished, tmp_path):
    out, _ = finished
    shutil.copytree(out / "small" / "softmax", tmp_path / "softmax")
    for path in (tmp_path / "softmax" / "checkpoints").rglob("*"):
        if path.is_file() and path.name != "manifest.json" and path.stat().st_size:
            path.write_bytes(path.read_bytes()[:-1] + b"\0\0")
    with pytest.raises(CheckpointError, match="was altered"):
        load(tmp_path / "softmax")


@pytest.fixture
def copied(finished, tmp_path):
    """Returns the folder of a copy of the finished study, which a test may change."""
    shutil.copytree(finished[0], tmp_path / "runs")
    return tmp_path / "runs"


@pytest.fixture(scope="module")
def quickly(tmp_path_factory):
    out = tmp_path_factory.mktemp("quickly")
    run(QUICKLY, out)
    return out


@pytest.fixture
def copied_quickly(quickly, tmp_path):
    """Returns the folder of a copy of a finished study that trains again very quickly."""
    shutil.copytree(quickly, tmp_path / "runs")
    return tmp_path / "runs"


def altered(path, **fields):
    folder = RunFolder(path.parent)
    folder.write(path.stem, (folder.read(path.stem) or {}) | fields)


@pytest.mark.parametrize("done", [True, False])
def test_other_data_are_refused(copied, done):
    folder = copied / "small" / "softmax"
    now = json.loads((folder / "experiment.json").read_text())["fingerprint"]
    altered(folder / "experiment.json", fingerprint="ab" * 32)
    if not done:
        (folder / "result.json").unlink()
    words = (
        f"was trained on other data \\(fingerprint abababababab, now {now[:12]}\\), and is unchanged; restore that data"
    )
    with pytest.raises(DataError, match=words):
        run(ONE, copied)
    with pytest.raises(DataError, match=words):
        load(folder)


def test_a_vocabulary_that_differs_from_the_data_is_refused(copied):
    folder = copied / "small" / "softmax"
    altered(folder / "vocabulary.json", lengths=[400, 400])
    with pytest.raises(DataError, match=r"vocabulary.json: 'lengths' differs from that of the data, so the run was"):
        load(folder)
    (folder / "result.json").unlink()
    with pytest.raises(DataError, match="'lengths' differs from that of the data"):
        run(ONE, copied)
    (folder / "vocabulary.json").write_text("{")
    for use in (lambda: load(folder), lambda: sample(folder, "1 2"), lambda: run(ONE, copied)):
        with pytest.raises(FolderError, match=r"vocabulary.json: not JSON: .*; remove only that file"):
            use()
    (folder / "vocabulary.json").unlink()
    with pytest.raises(FolderError, match=r"vocabulary.json is missing; restore it"):
        sample(folder, "1 2")
    # A run that lacks files, as after a kill, continues and writes them.
    assert run(ONE, copied).code == 0
    assert sample(folder, "1 2")["answer"]


@pytest.mark.parametrize("name", ["experiment", "result"])
def test_a_broken_file_is_refused_and_a_fresh_run_recovers_it(copied_quickly, name):
    path = copied_quickly / "small" / "softmax" / f"{name}.json"
    one = replace(QUICKLY, vary=ONE.vary)
    path.write_text("{")
    with pytest.raises(FolderError, match=f"{name}.json: not JSON: .*; (remove only that file|train the run again)"):
        run(one, copied_quickly)
    with pytest.raises(FolderError, match=r"(remove only that file|train the run again)"):
        load(path.parent)
    assert run(one, copied_quickly, fresh=True).code == 0
    assert RunFolder(path.parent).read(name)


def test_a_finished_variant_is_reported_once_under_its_own_name(copied_quickly, capsys):
    shutil.rmtree(copied_quickly / "small" / "softmax")
    run(QUICKLY, copied_quickly, progress=Plain(sys.stderr))
    lines = [line for line in capsys.readouterr().err.splitlines() if "already finished" in line]
    assert lines == [f"linear: already finished, in {copied_quickly}/small/linear"]


def test_a_folder_copied_to_the_name_of_another_variant_is_refused(copied):
    home = copied / "small"
    answer = sample(home / "softmax", "1 2 3")["answer"]
    shutil.rmtree(home / "linear")
    shutil.copytree(home / "softmax", home / "linear")
    with pytest.raises(
        ValueError, match=r"linear contains the run of variant 'softmax'; set another --out DIR to keep both$"
    ):
        run(STUDY, copied)
    page = report(home).read_text()
    assert "linear/experiment.json belongs to variant &#x27;softmax&#x27;, so the run is ignored" in page
    assert "1 of 2 variants finished" in page
    # `sample` and `load` accept the run by its folder, whatever the name of the folder.
    assert sample(home / "linear", "1 2 3")["answer"] == answer
    load(shutil.move(home / "linear", copied / "elsewhere"))
