import re
from pathlib import Path

import pytest

from attnlab.storage.json_file import FolderError, check_place, check_target


@pytest.mark.parametrize(
    ("option", "name", "words"),
    [
        ("--html", "a.png", "must end in .html"),
        ("--html", "html", "must end in .html"),
        ("--html", "folder.html", "is a folder, expected a file"),
        ("--json", "a.html", "must end in .json"),
        ("--json", "nowhere/a.json", ": the folder {}/nowhere does not exist"),
    ],
)
def test_an_impossible_output_file_is_refused_beforehand(tmp_path, option, name, words):
    (tmp_path / "folder.html").mkdir()
    line = re.escape(f"{option} {tmp_path / name}") + " ?" + re.escape(words.format(tmp_path))
    with pytest.raises(ValueError, match=line):
        check_target(option, tmp_path / name)
    check_target("--html", tmp_path / "a.html")
    assert [path.name for path in tmp_path.iterdir()] == ["folder.html"]


@pytest.mark.parametrize("check", [check_target, check_place])
def test_an_unwritable_output_file_is_refused_beforehand_and_an_existing_one_is_unchanged(tmp_path, check):
    with pytest.raises(FolderError, match=r"/proc/a\.json: "):
        check("--json", Path("/proc/a.json"))
    (tmp_path / "a.json").write_text("{}")
    check("--json", tmp_path / "a.json")
    assert (tmp_path / "a.json").read_text() == "{}"


@pytest.mark.parametrize("owner", ["experiment.json", "study.json"])
@pytest.mark.parametrize("inside", ["", "checkpoints/8/"])
def test_a_file_of_a_run_is_not_replaced(tmp_path, owner, inside):
    (tmp_path / inside).mkdir(parents=True, exist_ok=True)
    (tmp_path / owner).write_text("{}")
    file = tmp_path / f"{inside}result.json"
    file.write_text("{}")
    with pytest.raises(ValueError, match=re.escape(f"{file} would replace a file in the folder of a run")):
        check_target("--json", file)
    # A new file may lie there.
    check_target("--json", tmp_path / inside / "mine.json")
    assert file.read_text() == "{}"
