"""The content of files: read, decompressed within limits, and decoded."""

import codecs
import gzip
import io
import stat
import zlib
from pathlib import Path

from attnlab.storage.file_names import as_name

BLOCK = 1 << 16  # bytes read at a time
# Limits on the size of unpacked content, against decompression bombs, which are small on disk and fill the memory. It
# may have up to MOST bytes, and up to RATIO times the packed size. FREE bytes are always allowed.
MOST, RATIO, FREE = 1 << 28, 1000, 1 << 24


class DataError(Exception):
    """An error in data. The message is one line that names the file or the text. The command line exits with code 3."""

    exit_code = 3


class Damaged(DataError):
    """Raised for a compressed file that is cut short or damaged.

    Args:
      line: the message.
      content: the bytes that could be decompressed.
    """

    def __init__(self, line: str, content: bytes):
        super().__init__(line)
        self.content = content


def contents(path: Path, unpack: bool, limit: int = -1) -> bytes:
    """Returns the bytes of a file.

    Args:
      path: the file.
      unpack: whether the file is gzipped and must be decompressed.
      limit: the largest number of bytes to return; −1 means all.

    Raises:
      DataError: if the file is damaged or cannot be read. Also if it is a pipe or a device, which may never end.
        Without a `limit`, also if it decompresses to more than `room` allows.
    """
    try:
        about = path.stat()
        if not stat.S_ISREG(about.st_mode) and not stat.S_ISDIR(about.st_mode):
            raise DataError(f"{path} cannot be read: it is a pipe or a device, not a regular file")
        with path.open("rb") as file:
            return _unpacked(file, about.st_size, path, limit) if unpack else _drained(file, limit, path)
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror or error}") from error
    except ValueError as error:  # a name that is not valid on this system
        raise DataError(f"{str(path)!r} cannot be read: {error}") from error


def given(file: bytes | Path, path: str | Path) -> tuple[bytes, str | Path]:
    """Returns the bytes of `file` and the name to use for it in messages.

    Args:
      file: bytes, or a path to read.
      path: the name of the file if `file` is bytes.
    """
    return (file, path) if isinstance(file, bytes) else (contents(file, unpack=False), file)


def unpacked(content: bytes, path: str | Path) -> bytes:
    """Decompresses gzipped bytes.

    Raises:
      DataError: if they are damaged, or decompress to more than `room` allows. The message names `path`.
    """
    return _unpacked(io.BytesIO(content), len(content), path)


def room(packed: int) -> int:
    """Returns the largest allowed size of decompressed content for a packed size, both in bytes.

    It is never below the packed size.

    >>> room(1000), room(100_000), room(50_000_000)
    (16777216, 100000000, 268435456)
    """
    return max(packed, min(MOST, max(FREE, RATIO * packed)))


def too_much(path: str | Path, packed: int) -> DataError:
    """Returns the error for a file that decompresses to more than `room` allows."""
    return DataError(
        f"{path} decompresses to more than {room(packed):,} bytes; decompress it yourself if this size is correct"
    )


def _unpacked(file: io.BufferedIOBase, packed: int, path: str | Path, limit: int = -1) -> bytes:
    """Decompresses up to `limit` bytes of a gzipped file; −1 means all that `room` allows for its size `packed`."""
    with gzip.open(file) as content:
        found = _drained(content, room(packed) + 1 if limit < 0 else limit, path)
    if limit < 0 and len(found) > room(packed):
        raise too_much(path, packed)
    return found


def _drained(file: io.BufferedIOBase | gzip.GzipFile, limit: int, path: str | Path) -> bytes:
    """Reads up to `limit` bytes of an open file; −1 means all."""
    done = bytearray()
    try:
        # read1 returns what is available, so that the content before a break is kept.
        while block := file.read1(BLOCK if limit < 0 else min(BLOCK, limit - len(done))):
            done += block
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise Damaged(
            f"{path} is truncated or damaged after {len(done)} bytes of content ({error}); get it again",
            bytes(done),
        ) from error
    return bytes(done)


def text(content: bytes, path: str | Path) -> str:
    """Decodes `content` as UTF-8.

    Raises:
      DataError: if it is not UTF-8 or contains a zero byte. The message names `path` and the byte.
    """
    if content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        raise DataError(f"{path} is not UTF-8: it begins with the byte-order mark of UTF-16; save it as UTF-8")
    try:
        found = content.decode("utf-8")
    except UnicodeDecodeError as error:
        raise DataError(f"{path} is not UTF-8: byte {error.start} is {content[error.start]:#04x}") from error
    refuse_zeros(content, path)
    return found


def refuse_zeros(content: bytes, path: str | Path) -> None:
    """Refuses content with a zero byte.

    English text in UTF-16 is valid UTF-8 and valid Latin-1, with a zero byte next to each letter.

    Raises:
      DataError: if there is one. The message names UTF-16 if a quarter of the bytes or more are zero.
    """
    if (null := content.find(0)) >= 0:
        other = "; save it as UTF-8, not UTF-16" if 4 * content.count(0) >= len(content) else ""
        raise DataError(f"{path} is not text: byte {null} is 0x00{other}")


def user_path(name: str) -> Path:
    """Returns the path of a user's file, with `~` expanded and encoded in UTF-8, whatever the locale.

    Raises:
      DataError: if the home folder that `~` stands for is not known.
    """
    try:
        return Path(as_name(name)).expanduser()
    except RuntimeError as error:
        raise DataError(f"{name} cannot be read: {error}") from error


def user_text(name: str | Path) -> str:
    """Returns the text of a user's file in UTF-8, without a byte-order mark. It is gzipped if its name ends in .gz.

    Raises:
      DataError: as `user_path`, `contents` and `text`.
    """
    return text(user_bytes(name), name).removeprefix("\ufeff")


def user_bytes(name: str | Path) -> bytes:
    """Returns the bytes of a user's file, decompressed if its name ends in .gz; raises DataError as `contents`."""
    return contents(user_path(str(name)), str(name).endswith(".gz"))


def lines(content: str) -> list[str]:
    """Splits a text into lines at "\\n" or "\\r\\n", without these and without a byte-order mark.

    Nothing else ends a line. Form feeds and Unicode's separators are part of it.
    """
    rows = content.removeprefix("\ufeff").split("\n")
    return [row.removesuffix("\r") for row in (rows if rows[-1] else rows[:-1])]
