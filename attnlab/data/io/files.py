"""Files of public data sets: found on disk or fetched, and always verified against a sha256 in the source code."""

import codecs
import gzip
import hashlib
import http.client
import io
import os
import stat
import urllib.request
import zlib
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

TIMEOUT = 30.0  # seconds without a byte after which a download fails
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


@dataclass(frozen=True)
class Source:
    """One file of a data set, as its public address serves it.

    On disk, the file may also be gzipped, under `file` + ".gz".
    """

    set: str
    """Name of the data set, and of its folder."""
    file: str
    """Name of the file in this folder."""
    sha256: str
    """The sha256 of the file as served. For a gzipped copy, it is the sha256 of the content."""
    size: int
    """Number of bytes of the file as served. For a gzipped copy, it is the number of bytes of the content."""
    url: str
    """The address, https only."""


def read(source: Source) -> bytes:
    """Returns the verified bytes of `source`. Fetches it into the user's cache if it is on disk nowhere.

    Raises:
      DataError: if the file is missing and cannot be fetched, is damaged, or is another file.
    """
    path = locate(source)
    return fetch(source)[1] if path is None else verified(source, path)


def locate(source: Source) -> Path | None:
    """Returns the path of `source` in `$ATTNLAB_DATA` or else in the user's cache, or None. Verifies nothing."""
    names = (source.file, source.file + ".gz")
    candidates = (folder / name for folder in places(source.set) for name in names)
    return next((path for path in candidates if path.is_file()), None)


def places(name: str) -> list[Path]:
    """Returns the folders in which the files of the data set `name` are looked for, in order."""
    given = os.environ.get("ATTNLAB_DATA")
    roots = [user_path(given)] if given else []
    with suppress(DataError):
        roots.append(cache())
    return [root / name for root in roots]


def cache() -> Path:
    """Returns the folder for fetched files: `$XDG_CACHE_HOME/attnlab`, or else `~/.cache/attnlab`.

    Raises:
      DataError: if neither is known.
    """
    try:
        return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "attnlab"
    except RuntimeError as error:
        remedy = "set XDG_CACHE_HOME, or set ATTNLAB_DATA to a folder that contains the data"
        raise DataError(f"the home folder, which would contain the data, is not known; {remedy}") from error


def verified(source: Source, path: Path) -> bytes:
    """Returns the bytes of the file `path`, decompressed if it is a gzipped copy.

    Raises:
      DataError: if they are not the bytes of `source`, or the file is damaged.
    """
    # Reading one byte more than expected is enough to detect a longer file, and a large file cannot fill the memory.
    content = contents(path, path.name == source.file + ".gz", limit=source.size + 1)
    if wrong := _difference(source, content):
        raise DataError(
            f"{path} is not the expected file: {wrong}; point ATTNLAB_DATA at a good copy, "
            "or rename this one, so that it is fetched again"
        )
    return content


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
    # English text in UTF-16 is valid UTF-8, with a zero byte next to each letter.
    if (null := content.find(0)) >= 0:
        raise DataError(f"{path} is not text: byte {null} is 0x00; save it as UTF-8, not UTF-16")
    return found


def user_path(name: str) -> Path:
    """Returns the path of a user's file, with `~` expanded.

    Raises:
      DataError: if the home folder that `~` stands for is not known.
    """
    try:
        return Path(name).expanduser()
    except RuntimeError as error:
        raise DataError(f"{name} cannot be read: {error}") from error


def fetch(source: Source) -> tuple[Path, bytes]:
    """Fetches `source` over https into the user's cache.

    The content is verified before the file gets its name.

    Returns:
      The path in the cache, and the bytes.

    Raises:
      DataError: if the file cannot be fetched, verified or written.
    """
    target = cache() / source.set / source.file
    try:
        content = _download(source)
        if wrong := _difference(source, content):
            raise DataError(f"{source.url} served a different file: {wrong}; {_remedy(source)}")
    except (OSError, http.client.HTTPException) as error:
        where = ", ".join(str(folder) for folder in places(source.set))
        raise DataError(
            f"{source.set}/{source.file} is missing: looked in {where}; fetching {source.url} failed "
            f"({error or type(error).__name__}); connect to the network, or {_remedy(source)}"
        ) from error
    try:
        place(content, target)
    except OSError as error:
        problem = f"{error.filename or target} cannot be written: {error.strerror or error}"
        raise DataError(f"{problem}; set XDG_CACHE_HOME to a writable folder, or {_remedy(source)}") from error
    return target, content


def _download(source: Source) -> bytes:
    """Returns what the address serves, up to one byte more than the expected size."""
    if not source.url.startswith("https://"):
        raise OSError("not an https address")
    with urllib.request.urlopen(source.url, timeout=TIMEOUT) as answer:
        if not answer.url.startswith("https://"):
            raise OSError(f"redirected away from https, to {answer.url}")
        return answer.read(source.size + 1)


def place(content: bytes, target: Path) -> None:
    """Writes a file completely or not at all, because another process may be looking for it."""
    target.parent.mkdir(parents=True, exist_ok=True)
    part = target.with_name(f"{target.name}.{os.getpid()}.part")
    try:
        with part.open("wb") as file:
            file.write(content)
            file.flush()
            # Without fsync, a crash may leave a file with this name that is empty.
            os.fsync(file.fileno())
        os.replace(part, target)
    finally:
        part.unlink(missing_ok=True)


def _difference(source: Source, content: bytes) -> str:
    """Returns how `content` differs from the expected file, or "" if it is that file."""
    found = hashlib.sha256(content).hexdigest()
    if found == source.sha256:
        return ""
    size = f"more than {source.size}" if len(content) > source.size else str(len(content))
    return f"sha256 {source.sha256} expected, {found} found ({source.size} bytes expected, {size} found)"


def _remedy(source: Source) -> str:
    """Returns the advice on where to put the file by hand."""
    return f"set ATTNLAB_DATA to a folder that contains {source.set}/{source.file}"
