import gzip
import hashlib
import io
from pathlib import Path

import pytest

from attnlab.data.io import published
from attnlab.data.io.files import DataError
from attnlab.data.io.published import Source

CONTENT = "a line\nañother\n".encode() * 1000
SOURCE = Source("toys", "toys.txt", hashlib.sha256(CONTENT).hexdigest(), len(CONTENT), "https://example.org/toys.txt")


class Answer(io.BytesIO):
    """A stand-in for the response of urlopen. It counts the bytes that are read."""

    def __init__(self, content: bytes, url: str = SOURCE.url):
        super().__init__(content)
        self.url = url
        self.given = 0

    def read(self, size=-1):
        block = super().read(size)
        self.given += len(block)
        return block


@pytest.fixture
def root(monkeypatch, tmp_path):
    """Returns an empty folder $ATTNLAB_DATA/toys."""
    folder = tmp_path / "data" / "toys"
    folder.mkdir(parents=True)
    monkeypatch.setenv("ATTNLAB_DATA", str(tmp_path / "data"))
    return folder


def serve(monkeypatch, answer) -> list[str]:
    asked = []

    def urlopen(url, timeout):
        assert timeout <= 60
        asked.append(url)
        if isinstance(answer, Exception):
            raise answer
        return answer

    monkeypatch.setattr("urllib.request.urlopen", urlopen)
    return asked


def one_line(error) -> str:
    line = str(error.value)
    assert "\n" not in line
    assert error.value.exit_code == 3
    return line


def test_reads_a_good_file_and_never_fetches(root):
    (root / "toys.txt").write_bytes(CONTENT)
    assert published.read(SOURCE) == CONTENT
    assert published.locate(SOURCE) == root / "toys.txt"


def test_a_gzipped_copy_is_verified_by_its_content(root):
    # Two compression levels give different bytes with the same content.
    for level in (1, 9):
        (root / "toys.txt.gz").write_bytes(gzip.compress(CONTENT, level))
        assert published.read(SOURCE) == CONTENT


def test_an_altered_file_is_refused_with_path_and_hashes(root):
    altered = CONTENT.replace(b"a line", b"a lime", 1)
    (root / "toys.txt").write_bytes(altered)
    with pytest.raises(DataError) as error:
        published.read(SOURCE)
    line = one_line(error)
    for part in (
        str(root / "toys.txt"),
        SOURCE.sha256,
        hashlib.sha256(altered).hexdigest(),
        "ATTNLAB_DATA",
        "or rename this one",
    ):
        assert part in line
    assert "delete" not in line, "it may be a good file of another version"


@pytest.mark.parametrize("change", [lambda b: b[:-1], lambda b: b + b"x", lambda b: b"", lambda b: b * 100])
def test_a_file_of_another_length_is_refused(root, change):
    (root / "toys.txt").write_bytes(change(CONTENT))
    with pytest.raises(DataError, match="expected"):
        published.read(SOURCE)


@pytest.mark.parametrize("kept", [5, 40, -1])
def test_a_truncated_gzip_is_refused_with_its_path(root, kept):
    path = root / "toys.txt.gz"
    path.write_bytes(gzip.compress(CONTENT)[:kept])
    with pytest.raises(DataError, match="truncated or damaged after") as error:
        published.read(SOURCE)
    assert str(path) in one_line(error)


def test_every_flipped_bit_in_a_gzip_is_detected_or_harmless(root):
    packed = bytearray(gzip.compress(CONTENT))
    refused = 0
    for at in range(len(packed)):
        flipped = packed.copy()
        flipped[at] ^= 16
        (root / "toys.txt.gz").write_bytes(flipped)
        try:
            # A date in the header or a spare bit at the end may differ, but the content may not.
            assert published.read(SOURCE) == CONTENT
        except DataError:
            refused += 1
    assert refused > 0.8 * len(packed)


def test_an_invalid_gzip_is_refused(root):
    (root / "toys.txt.gz").write_bytes(CONTENT)
    with pytest.raises(DataError, match="damaged"):
        published.read(SOURCE)


def test_offline_a_missing_file_says_where_it_was_looked_for(root, tmp_path):
    with pytest.raises(DataError) as error:
        published.read(SOURCE)
    line = one_line(error)
    for part in (
        "toys/toys.txt",
        str(root),
        str(tmp_path / "cache"),
        SOURCE.url,
        "no network",
        "set ATTNLAB_DATA",
    ):
        assert part in line


@pytest.mark.parametrize("folder", [None, "", "/nowhere/at/all"])
def test_without_a_data_folder_the_cache_serves(monkeypatch, tmp_path, folder):
    if folder is None:
        monkeypatch.delenv("ATTNLAB_DATA", raising=False)
    else:
        monkeypatch.setenv("ATTNLAB_DATA", folder)
    cached = tmp_path / "cache" / "attnlab" / "toys" / "toys.txt"
    cached.parent.mkdir(parents=True)
    cached.write_bytes(CONTENT)
    assert published.read(SOURCE) == CONTENT


def test_the_cache_is_the_users(monkeypatch, tmp_path):
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert published.cache() == tmp_path / ".cache" / "attnlab"


def test_a_verified_download_is_cached(monkeypatch, root, tmp_path):
    asked = serve(monkeypatch, Answer(CONTENT))
    assert published.read(SOURCE) == CONTENT
    assert published.read(SOURCE) == CONTENT
    assert asked == [SOURCE.url]
    assert [path.name for path in (tmp_path / "cache" / "attnlab" / "toys").iterdir()] == ["toys.txt"]


@pytest.mark.parametrize("sent", [CONTENT[:-1], b"<html>not found</html>", CONTENT + b"x" * 10_000])
def test_a_wrong_download_is_not_kept(monkeypatch, root, tmp_path, sent):
    serve(monkeypatch, Answer(sent))
    with pytest.raises(DataError) as error:
        published.read(SOURCE)
    assert SOURCE.url in one_line(error)
    assert not list((tmp_path / "cache").rglob("*.txt*"))


def test_downloads_are_limited_to_the_known_size(monkeypatch, root):
    endless = Answer(b"x" * 10 * len(CONTENT))
    serve(monkeypatch, endless)
    with pytest.raises(DataError, match="more than"):
        published.read(SOURCE)
    assert endless.given <= len(CONTENT) + 1


@pytest.mark.parametrize("failure", [TimeoutError("timed out"), ConnectionResetError("reset"), OSError(28, "full")])
def test_a_failed_download_gives_one_line(monkeypatch, root, failure):
    serve(monkeypatch, failure)
    with pytest.raises(DataError, match="fetching https://") as error:
        published.read(SOURCE)
    one_line(error)


def test_only_https_is_followed(monkeypatch, root):
    serve(monkeypatch, Answer(CONTENT, url="http://example.org/toys.txt"))
    with pytest.raises(DataError, match="https"):
        published.read(SOURCE)


def test_a_folder_under_the_files_name_is_no_file(root):
    (root / "toys.txt").mkdir()
    with pytest.raises(DataError, match="missing"):
        published.read(SOURCE)


def test_without_a_home_folder_local_data_are_read_and_the_message_names_the_variable(root, monkeypatch):
    def unknown():
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setattr(Path, "home", unknown)
    with pytest.raises(
        DataError, match=r"^the home folder, which would contain the data, is not known; set XDG_CACHE_HOME, or "
    ):
        published.read(SOURCE)
    (root / "toys.txt").write_bytes(CONTENT)
    assert published.read(SOURCE) == CONTENT
    monkeypatch.setenv("ATTNLAB_DATA", "~nobody-of-that-name")
    with pytest.raises(DataError, match=r"^~nobody-of-that-name cannot be read: "):
        published.read(SOURCE)


def test_an_unwritable_cache_is_not_reported_as_a_failed_download(monkeypatch, root, tmp_path):
    (tmp_path / "cache").write_text("a file in its place")
    serve(monkeypatch, Answer(CONTENT))
    with pytest.raises(DataError, match=r"cannot be written: Not a directory; set XDG_CACHE_HOME to a writable folder"):
        published.read(SOURCE)
