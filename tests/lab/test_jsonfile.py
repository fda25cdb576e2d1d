import re

import pytest

from attnlab.lab.jsonfile import check_target


@pytest.mark.parametrize(
    ("option", "name", "words"),
    [
        ("--html", "a.png", "must end in .html"),
        ("--html", "html", "must end in .html"),
        ("--html", "folder.html", "is a folder; name a file"),
        ("--json", "a.html", "must end in .json"),
        ("--json", "nowhere/a.json", ": there is no folder "),
    ],
)
def test_where_no_file_can_be_is_told_beforehand(tmp_path, option, name, words):
    (tmp_path / "folder.html").mkdir()
    with pytest.raises(ValueError, match=re.escape(f"{option} {tmp_path / name}") + " ?" + re.escape(words)):
        check_target(option, tmp_path / name)
    check_target("--html", tmp_path / "a.html")
    assert [path.name for path in tmp_path.iterdir()] == ["folder.html"]
