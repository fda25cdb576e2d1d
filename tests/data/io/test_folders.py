import pytest

from attnlab.data.io.files import DataError
from attnlab.data.io.folders import files


def put(root, *names):
    for name in names:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(name)


def found(root):
    return [path.relative_to(root).as_posix() for path in files(root)]


def test_files_behind_symbolic_links_are_found(tmp_path):
    put(tmp_path / "elsewhere", "1", "deeper/2")
    put(tmp_path / "root", "a/1", "c/1")
    (tmp_path / "root" / "b").symlink_to(tmp_path / "elsewhere")
    (tmp_path / "root" / "d").symlink_to(tmp_path / "elsewhere" / "1")
    # A folder may have two names.
    (tmp_path / "root" / "e").symlink_to(tmp_path / "root" / "a")
    assert found(tmp_path / "root") == ["a/1", "b/1", "b/deeper/2", "c/1", "d", "e/1"]


def test_hidden_names_are_ignored(tmp_path):
    put(tmp_path / ".root", "a/1", "a/.1", ".git/1", "__MACOSX/a/1", "._a")
    (tmp_path / ".root" / ".loop").symlink_to(tmp_path)
    assert found(tmp_path / ".root") == ["a/1"]


@pytest.mark.parametrize("target", [".", "..", "a", "/"])
def test_a_link_to_a_parent_folder_is_refused_by_name(tmp_path, target):
    put(tmp_path / "root", "a/1")
    (tmp_path / "root" / "a" / "link").symlink_to((tmp_path / "root" / target).resolve())
    with pytest.raises(DataError, match=r"root/a/link is a link to .*, which contains the link"):
        files(tmp_path / "root")


def test_two_folders_that_link_to_each_other_are_refused(tmp_path):
    put(tmp_path / "root", "a/1", "b/1")
    for one, other in ("ab", "ba"):
        (tmp_path / "root" / one / "link").symlink_to(tmp_path / "root" / other)
    with pytest.raises(DataError, match=r"root/a/link/link is a link to .*/a, which contains the link"):
        files(tmp_path / "root")


def test_a_broken_link_is_listed(tmp_path):
    (tmp_path / "gone").symlink_to(tmp_path / "nowhere")
    assert found(tmp_path) == ["gone"]


def test_a_folder_that_cannot_be_read_is_named(tmp_path):
    with pytest.raises(DataError, match=r"none cannot be read: No such file"):
        files(tmp_path / "none")
