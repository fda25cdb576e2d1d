"""Files of public data sets: found or fetched, and always verified against a sha256 in the source."""

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

TIMEOUT = 30.0  # seconds without a byte before a download is given up
BLOCK = 1 << 16  # bytes read at a time
# What a packed file may unpack to, in bytes and, where that is more than FREE, in times its own size: a bomb is small
# on the disk and fills the memory.
MOST, RATIO, FREE = 1 << 28, 1000, 1 << 24


class DataError(Exception):
    """What is wrong with data: one line that names the file or the text. The command line leaves with 3."""

    exit_code = 3


class Damaged(DataError):
    """Of a packed file that breaks off: `content` is what could be unpacked of it."""

    def __init__(self, line: str, content: bytes):
        super().__init__(line)
        self.content = content


@dataclass(frozen=True)
class Source:
    """One file of a data set, as its public address serves it.

    On disk it lies in the folder `set` under `file`, or gzipped under `file` + ".gz". `sha256` and `size`
    (bytes) are those of what the address serves; of a gzipped copy, therefore, those of its content.
    """

    set: str
    file: str
    sha256: str
    size: int
    url: str


def read(source: Source) -> bytes:
    """The verified bytes of `source`, fetched into the user's cache where no folder holds it.

    Raises DataError where the file is missing and cannot be fetched, is damaged, or is another file.
    """
    path = locate(source)
    return fetch(source)[1] if path is None else verified(source, path)


def locate(source: Source) -> Path | None:
    """Where `source` lies: in `$ATTNLAB_DATA`, else in the user's cache, else None. Nothing is verified."""
    names = (source.file, source.file + ".gz")
    candidates = (folder / name for folder in places(source.set) for name in names)
    return next((path for path in candidates if path.is_file()), None)


def places(name: str) -> list[Path]:
    """The folders in which the files of a data set are looked for, in order."""
    given = os.environ.get("ATTNLAB_DATA")
    roots = [own(given)] if given else []
    with suppress(DataError):
        roots.append(cache())
    return [root / name for root in roots]


def cache() -> Path:
    """Where fetched files are kept: `$XDG_CACHE_HOME/attnlab`, else `~/.cache/attnlab`.

    Raises DataError where neither is known.
    """
    try:
        return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "attnlab"
    except RuntimeError as error:
        lost = "no home folder is known here to keep data in"
        raise DataError(f"{lost}: set XDG_CACHE_HOME, or ATTNLAB_DATA to a folder that holds them") from error


def verified(source: Source, path: Path) -> bytes:
    """The bytes of `path`, unpacked where it is gzipped; DataError where they are not those of `source`."""
    # One byte more than there may be is enough to tell, and no file can fill the memory.
    content = contents(path, path.name == source.file + ".gz", limit=source.size + 1)
    if wrong := _difference(source, content):
        raise DataError(
            f"{path} is not the file attnlab knows: {wrong}; point ATTNLAB_DATA at a good copy, "
            "or rename it and connect, so that it is fetched"
        )
    return content


def contents(path: Path, unpack: bool, limit: int = -1) -> bytes:
    """Up to `limit` bytes (−1: all) of a file, unpacked if asked; DataError where it is damaged.

    Also where it is no plain file, for a pipe or a device may never end; and, where all are asked for, where more is
    packed in it than `room` allows.
    """
    try:
        about = path.stat()
        if not stat.S_ISREG(about.st_mode) and not stat.S_ISDIR(about.st_mode):
            raise DataError(f"{path} cannot be read: it is a pipe or a device, and no plain file")
        with path.open("rb") as file:
            return _unpacked(file, about.st_size, path, limit) if unpack else _drained(file, limit, path)
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror or error}") from error
    except ValueError as error:  # a name that the system cannot have
        raise DataError(f"{str(path)!r} cannot be read: {error}") from error


def given(file: bytes | Path, path: str | Path) -> tuple[bytes, str | Path]:
    """The bytes of a file, or bytes that are at hand already, and what an error calls them."""
    return (file, path) if isinstance(file, bytes) else (contents(file, unpack=False), file)


def unpacked(content: bytes, path: str | Path) -> bytes:
    """Bytes that are gzipped, unpacked; DataError naming `path` where they are damaged, or more than `room` allows."""
    return _unpacked(io.BytesIO(content), len(content), path)


def room(packed: int) -> int:
    """How many bytes so many packed ones may unpack to; never fewer than they are.

    >>> room(1000), room(100_000), room(50_000_000)
    (16777216, 100000000, 268435456)
    """
    return max(packed, min(MOST, max(FREE, RATIO * packed)))


def too_much(path: str | Path, packed: int) -> DataError:
    """What is said of a file in which more is packed than there is room for."""
    return DataError(f"{path} unpacks to more than {room(packed):,} bytes: unpack it yourself if that is what it holds")


def _unpacked(file: io.BufferedIOBase, packed: int, path: str | Path, limit: int = -1) -> bytes:
    with gzip.open(file) as content:
        found = _drained(content, room(packed) + 1 if limit < 0 else limit, path)
    if limit < 0 and len(found) > room(packed):
        raise too_much(path, packed)
    return found


def _drained(file: io.BufferedIOBase | gzip.GzipFile, limit: int, path: str | Path) -> bytes:
    done = bytearray()
    try:
        # One block as far as it goes: of one that breaks off what is there is kept.
        while block := file.read1(BLOCK if limit < 0 else min(BLOCK, limit - len(done))):
            done += block
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise Damaged(
            f"{path} is cut short or damaged after {len(done)} bytes of content ({error}); get it again",
            bytes(done),
        ) from error
    return bytes(done)


def text(content: bytes, path: str | Path) -> str:
    """`content` as UTF-8; DataError naming `path` and the byte where it is not, or is no text at all."""
    if content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        raise DataError(f"{path} is not UTF-8: it begins with the mark of UTF-16; save it as UTF-8")
    try:
        found = content.decode("utf-8")
    except UnicodeDecodeError as error:
        raise DataError(f"{path} is not UTF-8: byte {error.start} is {content[error.start]:#04x}") from error
    # English in UTF-16 is UTF-8 to the letter, with one of these beside each.
    if (null := content.find(0)) >= 0:
        raise DataError(f"{path} is no text: byte {null} is 0x00; UTF-8 is read, not UTF-16")
    return found


def own(name: str) -> Path:
    """Where a file of a user's own lies, `~` being the home; DataError where whose home is meant cannot be told."""
    try:
        return Path(name).expanduser()
    except RuntimeError as error:
        raise DataError(f"{name} cannot be read: {error}") from error


def fetch(source: Source) -> tuple[Path, bytes]:
    """Fetch `source` over https into the user's cache: its path there and its bytes.

    What arrives is verified before it takes its name; DataError where it cannot be had.
    """
    target = cache() / source.set / source.file
    try:
        content = _download(source)
        if wrong := _difference(source, content):
            raise DataError(f"{source.url} sent another file: {wrong}; {_remedy(source)}")
    except (OSError, http.client.HTTPException) as error:
        where = ", ".join(str(folder) for folder in places(source.set))
        raise DataError(
            f"{source.set}/{source.file} is missing: looked in {where}; fetching {source.url} failed "
            f"({error or type(error).__name__}); connect, or {_remedy(source)}"
        ) from error
    try:
        place(content, target)
    except OSError as error:
        where = f"{error.filename or target} cannot be written: {error.strerror or error}"
        raise DataError(f"{where}; set XDG_CACHE_HOME to a folder that can, or {_remedy(source)}") from error
    return target, content


def _download(source: Source) -> bytes:
    """What the address serves, up to one byte more than the file has."""
    if not source.url.startswith("https://"):
        raise OSError("not an https address")
    with urllib.request.urlopen(source.url, timeout=TIMEOUT) as answer:
        if not answer.url.startswith("https://"):
            raise OSError(f"redirected away from https, to {answer.url}")
        return answer.read(source.size + 1)


def place(content: bytes, target: Path) -> None:
    """Write a file whole or not at all: another process may be looking for it."""
    target.parent.mkdir(parents=True, exist_ok=True)
    part = target.with_name(f"{target.name}.{os.getpid()}.part")
    try:
        with part.open("wb") as file:
            file.write(content)
            file.flush()
            # Else a machine that stops may leave the name with nothing behind it.
            os.fsync(file.fileno())
        os.replace(part, target)
    finally:
        part.unlink(missing_ok=True)


def _difference(source: Source, content: bytes) -> str:
    """What tells `content` from the file it should be; nothing where it is that file."""
    found = hashlib.sha256(content).hexdigest()
    if found == source.sha256:
        return ""
    size = f"more than {source.size}" if len(content) > source.size else str(len(content))
    return f"sha256 {source.sha256} expected, {found} found ({source.size} bytes expected, {size} found)"


def _remedy(source: Source) -> str:
    return f"set ATTNLAB_DATA to a folder that holds {source.set}/{source.file}"
