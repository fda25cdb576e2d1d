import gzip
import os
from pathlib import Path

import pytest

from attnlab.data.io import files
from attnlab.data.io.files import DataError


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


def test_a_stray_zero_byte_is_not_taken_for_utf16():
    with pytest.raises(DataError, match=r"^words\.txt is not text: byte 4 is 0x00$"):
        files.text(b"a\tb\n\0c\td\n", "words.txt")


def test_an_unknown_home_folder_is_refused():
    with pytest.raises(DataError, match=r"^~nobody-of-that-name/words.txt cannot be read: "):
        files.user_path("~nobody-of-that-name/words.txt")


def bomb(size: int) -> bytes:
    """Returns `size` zeros, compressed as many copies of the same gzip block."""
    block = gzip.compress(b"\0" * (1 << 20))
    return block * (size >> 20)


def test_a_gzipped_file_decompresses_to_at_most_its_limit(tmp_path, monkeypatch):
    monkeypatch.setattr(files, "MOST", 1 << 22)
    path = tmp_path / "corpus.gz"
    path.write_bytes(bomb(1 << 23))
    with pytest.raises(DataError, match=r"corpus\.gz decompresses to more than 4,194,304 bytes"):
        files.contents(path, unpack=True)
    path.write_bytes(bomb(1 << 22))
    assert len(files.contents(path, unpack=True)) == 1 << 22
    assert files.unpacked(path.read_bytes(), "corpus.gz") == b"\0" * (1 << 22)
    # The limit does not apply to a file that is not compressed.
    path.write_bytes(b"x" * (1 << 23))
    assert len(files.contents(path, unpack=False)) == 1 << 23


def test_the_limit_is_by_size_and_by_ratio():
    assert files.room(1) == files.FREE
    assert files.room(100_000) == files.RATIO * 100_000
    assert files.room(10**8) == files.MOST
    assert files.room(10**9) == 10**9, "nothing may be packed in it"


def test_pipes_and_devices_are_refused(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", Path("/dev/zero")):
        for unpack in (False, True):
            with pytest.raises(DataError, match="it is a pipe or a device"):
                files.contents(path, unpack)
    with pytest.raises(DataError, match="Is a directory"):
        files.contents(tmp_path, unpack=False)
