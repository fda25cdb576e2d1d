import hashlib
import zipfile
from pathlib import PurePosixPath

import pytest

from attnlab.data.audio import spoken
from attnlab.data.images import cells
from attnlab.data.io import archives
from attnlab.data.io.bundles import Bundle
from attnlab.data.io.files import DataError

FILES = {"a.wav": b"first", "b.wav": b"second"}
LISTED = "".join(f"{hashlib.sha256(content).hexdigest()}  {name}\n" for name, content in FILES.items())
BUNDLE = Bundle(
    "set",
    "packed.zip",
    "https://example.org/set",
    hashlib.sha256(LISTED.encode()).hexdigest(),
    lambda files: [name for name in files if name.endswith(".wav")],
)


@pytest.fixture
def root(monkeypatch, tmp_path):
    monkeypatch.setenv("ATTNLAB_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path


def clone(folder, files):
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)


def test_a_clone_and_an_archive_are_equal(root):
    clone(root / "data/set", {"deep/b.wav": b"second", "a.wav": b"first", "README.md": b"?", ".git/c.wav": b"x"})
    assert BUNDLE.read() == FILES
    assert list(BUNDLE.read()) == sorted(FILES)
    assert BUNDLE.find()[0] == root / "data/set"
    (root / "data/set/deep/b.wav").write_bytes(b"other")
    with zipfile.ZipFile(root / "data/set/packed.zip", "w") as packed:
        for name, content in FILES.items():
            packed.writestr(f"any/{name}", content)
    assert BUNDLE.find() == (root / "data/set/packed.zip", FILES)


def test_the_cache_is_searched_last(root):
    clone(root / "cache/attnlab/set", FILES)
    clone(root / "data/set", {"LICENSE": b"free"})
    assert BUNDLE.find()[0] == root / "cache/attnlab/set"


def test_a_missing_or_altered_bundle_is_reported(root):
    with pytest.raises(
        DataError, match=r"^set is missing: looked in .*data.set, .*set; it is not served .*git clone http"
    ):
        BUNDLE.read()
    clone(root / "data/set", {**FILES, "b.wav": b"secons"})
    with pytest.raises(DataError, match=rf"data.set is not the expected data: sha256 {BUNDLE.sha256} expected") as e:
        BUNDLE.read()
    assert str(e.value).endswith(
        "point ATTNLAB_DATA at a good copy, or rename this one and get it again from " + BUNDLE.url
    )
    clone(root / "data/set", {**FILES, "c.wav": b""})
    with pytest.raises(DataError, match=r"found for its 3 files"):
        BUNDLE.read()
    (root / "data/set/packed.zip").write_bytes(b"PK\x03\x04")
    with pytest.raises(DataError, match=r"packed.zip is a damaged archive"):
        BUNDLE.read()


def test_photographs_are_read_from_a_clone(published, tmp_path, monkeypatch):
    found = archives.members(published("bccd") / "bccd_trainval.tar.gz")
    monkeypatch.setenv("ATTNLAB_DATA", str(tmp_path))
    folders = {".jpg": "JPEGImages", ".xml": "Annotations", ".txt": "ImageSets/Main"}
    named = {name: PurePosixPath(name) for name in found}
    files = {f"BCCD/{folders.get(path.suffix, 'x')}/{path.name}": found[name] for name, path in named.items()}
    extra = {"BCCD/JPEGImages/BloodImage_00007.jpg": b"the published test", "BCCD/ImageSets/Main/test.txt": b"x\n"}
    clone(tmp_path / "bccd", {**files, **extra})
    assert cells.CELLS.find()[0] == tmp_path / "bccd"
    (tmp_path / "bccd/BCCD/JPEGImages/BloodImage_00001.jpg").unlink()
    with pytest.raises(DataError, match=r"bccd lacks 'BloodImage_00001.jpg'"):
        cells.CELLS.read()


def test_recordings_are_read_from_a_clone(published, tmp_path, monkeypatch):
    found = archives.members(published("fsdd") / "recordings.tar.xz")
    monkeypatch.setenv("ATTNLAB_DATA", str(tmp_path))
    clone(tmp_path / "fsdd", {**found, "recordings/0_someone_0.wav": b"new", "acquire_data/say.py": b""})
    assert spoken.RECORDINGS.find()[0] == tmp_path / "fsdd"
