import os

import pytest

from attnlab.lab.runs.confined import confined
from attnlab.lab.runs.run_folder import FolderError


@pytest.fixture
def run(tmp_path):
    folder = tmp_path / "runs" / "dates" / "softmax"
    (folder / "checkpoints").mkdir(parents=True)
    (folder / "lock").touch()
    (tmp_path / "other").mkdir()
    return folder


def test_a_run_of_plain_files_and_a_new_run_are_accepted(run):
    confined(run)
    confined(run.parent / "linear")
    confined(run.parent.parent / "reverse" / "linear")


@pytest.mark.parametrize("name", ["lock", "metrics.jsonl", "vocabulary.json", "checkpoints", "result.json"])
def test_a_symbolic_link_in_a_run_is_refused(run, name):
    for target in (run.parents[2] / "other", run.parents[2] / "nowhere", run / "experiment.json"):
        path = run / name
        if path.is_dir() and not path.is_symlink():
            path.rmdir()
        path.unlink(missing_ok=True)
        path.symlink_to(target)
        with pytest.raises(FolderError, match=rf"{name} is a symbolic link"):
            confined(run)


def test_a_run_or_study_that_is_a_symbolic_link_is_refused(run):
    (run.parent / "linear").symlink_to(run.parents[2] / "other")
    with pytest.raises(FolderError, match="linear is a symbolic link"):
        confined(run.parent / "linear")
    (run.parents[1] / "reverse").symlink_to(run.parent)
    with pytest.raises(FolderError, match="reverse is a symbolic link"):
        confined(run.parents[1] / "reverse" / "softmax")


def test_the_output_folder_may_be_a_symbolic_link(run, tmp_path):
    (tmp_path / "elsewhere").symlink_to(run.parents[1])
    confined(tmp_path / "elsewhere" / "dates" / "softmax")


def test_a_named_pipe_in_a_run_is_refused(run):
    os.mkfifo(run / "result.json")
    with pytest.raises(FolderError, match=r"result\.json is a pipe or a device"):
        confined(run)
