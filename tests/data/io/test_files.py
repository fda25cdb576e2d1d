import gzip
import hashlib
import io
import os
from pathlib import Path

import pytest

from attnlab.data.io import files
from attnlab.data.io.files import DataError, Source

CONTENT = "a line\nañother\n".encode() * 1000
SOURCE = Source("toys", "toys.txt", hashlib.sha256(CONTENT).hexdigest(), len(CONTENT), "https://example.org/toys.txt")


class Answer(io.BytesIO):
    """What urlopen answers."""

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
    """An empty $ATTNLAB_DATA/toys."""
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
    assert files.read(SOURCE) == CONTENT
    assert files.locate(SOURCE) == root / "toys.txt"


def test_a_gzipped_copy_is_verified_by_its_content(root):
    # Compressed twice with other settings: other bytes, the same content.
    for level in (1, 9):
        (root / "toys.txt.gz").write_bytes(gzip.compress(CONTENT, level))
        assert files.read(SOURCE) == CONTENT


def test_an_altered_file_is_refused_with_path_and_hashes(root):
    altered = CONTENT.replace(b"a line", b"a lime", 1)
    (root / "toys.txt").write_bytes(altered)
    with pytest.raises(DataError) as error:
        files.read(SOURCE)
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
        files.read(SOURCE)


@pytest.mark.parametrize("kept", [5, 40, -1])
def test_a_truncated_gzip_is_refused_with_its_path(root, kept):
    path = root / "toys.txt.gz"
    path.write_bytes(gzip.compress(CONTENT)[:kept])
    with pytest.raises(DataError, match="truncated or damaged after") as error:
        files.read(SOURCE)
    assert str(path) in one_line(error)


def test_a_flipped_bit_in_a_gzip_changes_nothing_unseen(root):
    packed = bytearray(gzip.compress(CONTENT))
    refused = 0
    for at in range(len(packed)):
        flipped = packed.copy()
        flipped[at] ^= 16
        (root / "toys.txt.gz").write_bytes(flipped)
        try:
            # A date in the header or a spare bit at the end may differ; the content may not.
            assert files.read(SOURCE) == CONTENT
        except DataError:
            refused += 1
    assert refused > 0.8 * len(packed)


def test_what_is_no_gzip_is_refused(root):
    (root / "toys.txt.gz").write_bytes(CONTENT)
    with pytest.raises(DataError, match="damaged"):
        files.read(SOURCE)


def test_offline_a_missing_file_says_where_it_was_looked_for(root, tmp_path):
    with pytest.raises(DataError) as error:
        files.read(SOURCE)
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
    assert files.read(SOURCE) == CONTENT


def test_the_cache_is_the_users(monkeypatch, tmp_path):
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert files.cache() == tmp_path / ".cache" / "attnlab"


def test_fetches_once_and_keeps_what_it_verified(monkeypatch, root, tmp_path):
    asked = serve(monkeypatch, Answer(CONTENT))
    assert files.read(SOURCE) == CONTENT
    assert files.read(SOURCE) == CONTENT
    assert asked == [SOURCE.url]
    assert [path.name for path in (tmp_path / "cache" / "attnlab" / "toys").iterdir()] == ["toys.txt"]


@pytest.mark.parametrize("sent", [CONTENT[:-1], b"<html>not found</html>", CONTENT + b"x" * 10_000])
def test_what_arrives_wrong_is_not_kept(monkeypatch, root, tmp_path, sent):
    serve(monkeypatch, Answer(sent))
    with pytest.raises(DataError) as error:
        files.read(SOURCE)
    assert SOURCE.url in one_line(error)
    assert not list((tmp_path / "cache").rglob("*.txt*"))


def test_reads_no_more_than_the_file_has(monkeypatch, root):
    endless = Answer(b"x" * 10 * len(CONTENT))
    serve(monkeypatch, endless)
    with pytest.raises(DataError, match="more than"):
        files.read(SOURCE)
    assert endless.given <= len(CONTENT) + 1


@pytest.mark.parametrize("failure", [TimeoutError("timed out"), ConnectionResetError("reset"), OSError(28, "full")])
def test_a_failed_fetch_is_one_line(monkeypatch, root, failure):
    serve(monkeypatch, failure)
    with pytest.raises(DataError, match="fetching https://") as error:
        files.read(SOURCE)
    one_line(error)


def test_only_https_is_followed(monkeypatch, root):
    serve(monkeypatch, Answer(CONTENT, url="http://example.org/toys.txt"))
    with pytest.raises(DataError, match="https"):
        files.read(SOURCE)


def test_a_folder_under_the_files_name_is_no_file(root):
    (root / "toys.txt").mkdir()
    with pytest.raises(DataError, match="missing"):
        files.read(SOURCE)


def test_bad_utf8_names_path_and_byte():
    with pytest.raises(DataError, match=r"words\.txt is not UTF-8: byte 3 is 0xff"):
        files.text(b"abc\xffdef", "words.txt")
    assert files.text("añb".encode(), "words.txt") == "añb"


def test_utf16_is_not_taken_for_utf8():
    with pytest.raises(DataError, match=r"^words\.txt is not text: byte 1 is 0x00; save it as UTF-8, not UTF-16$"):
        files.text("abc".encode("utf-16-le"), "words.txt")
    for order in ("le", "be"):
        with pytest.raises(
            DataError, match=r"^words\.txt is not UTF-8: it begins with the byte-order mark of UTF-16; save it as"
        ):
            files.text("\ufeffabc".encode(f"utf-16-{order}"), "words.txt")


def test_a_home_that_nobody_has():
    with pytest.raises(DataError, match=r"^~nobody-of-that-name/words.txt cannot be read: "):
        files.user_path("~nobody-of-that-name/words.txt")


def bomb(size: int) -> bytes:
    """Gzipped zeros: many times the same packed block, as a file may hold."""
    block = gzip.compress(b"\0" * (1 << 20))
    return block * (size >> 20)


def test_a_packed_file_of_ones_own_unpacks_to_no_more_than_there_is_room_for(tmp_path, monkeypatch):
    monkeypatch.setattr(files, "MOST", 1 << 22)
    path = tmp_path / "corpus.gz"
    path.write_bytes(bomb(1 << 23))
    with pytest.raises(DataError, match=r"corpus\.gz decompresses to more than 4,194,304 bytes"):
        files.contents(path, unpack=True)
    path.write_bytes(bomb(1 << 22))
    assert len(files.contents(path, unpack=True)) == 1 << 22
    assert files.unpacked(path.read_bytes(), "corpus.gz") == b"\0" * (1 << 22)
    # What is not packed is as large as it is.
    path.write_bytes(b"x" * (1 << 23))
    assert len(files.contents(path, unpack=False)) == 1 << 23


def test_room_is_bounded_by_size_and_by_ratio():
    assert files.room(1) == files.FREE
    assert files.room(100_000) == files.RATIO * 100_000
    assert files.room(10**8) == files.MOST
    assert files.room(10**9) == 10**9, "nothing may be packed in it"


def test_a_pipe_and_a_device_are_no_files(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", Path("/dev/zero")):
        for unpack in (False, True):
            with pytest.raises(DataError, match="it is a pipe or a device"):
                files.contents(path, unpack)
    with pytest.raises(DataError, match="Is a directory"):
        files.contents(tmp_path, unpack=False)


def test_where_no_home_is_known_data_of_your_own_are_read_and_what_to_set_is_said(root, monkeypatch):
    def unknown():
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setattr(Path, "home", unknown)
    with pytest.raises(
        DataError, match=r"^the home folder, which would contain the data, is not known; set XDG_CACHE_HOME, or "
    ):
        files.read(SOURCE)
    (root / "toys.txt").write_bytes(CONTENT)
    assert files.read(SOURCE) == CONTENT
    monkeypatch.setenv("ATTNLAB_DATA", "~nobody-of-that-name")
    with pytest.raises(DataError, match=r"^~nobody-of-that-name cannot be read: "):
        files.read(SOURCE)


def test_a_cache_that_cannot_be_written_is_not_called_a_failed_fetch(monkeypatch, root, tmp_path):
    (tmp_path / "cache").write_text("a file in its place")
    serve(monkeypatch, Answer(CONTENT))
    with pytest.raises(DataError, match=r"cannot be written: Not a directory; set XDG_CACHE_HOME to a writable folder"):
        files.read(SOURCE)
