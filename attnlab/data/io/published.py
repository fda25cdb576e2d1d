"""Files of public data sets: found on disk or fetched, and always verified against a sha256 in the source code."""

import hashlib
import http.client
import os
import urllib.request
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from attnlab.data.io.files import DataError, contents, user_path
from attnlab.storage.cache_folder import cache_folder
from attnlab.storage.fsync import write_atomically

TIMEOUT = 30.0  # seconds without a byte after which a download fails


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


def listed(set: str, address: str, table: str) -> dict[str, Source]:
    """Returns the sources of a data set, by file name.

    Args:
      set: name of the data set.
      address: the address of the folder that has the files.
      table: a line for each file: its path below the address, its size in bytes and its sha256.
    """
    sources = {}
    for path, size, sha256 in map(str.split, table.strip().split("\n")):
        file = path.rpartition("/")[2]
        sources[file] = Source(set, file, sha256, int(size), f"{address}/{path}")
    return sources


def read(source: Source) -> bytes:
    """Returns the verified bytes of `source`. Fetches it into the user's cache if it is on disk nowhere.

    Raises:
      DataError: if the file is missing and cannot be fetched, is damaged, or is another file.
    """
    path = locate(source)
    return fetch(source)[1] if path is None else verified(source, path)


def find(source: Source) -> tuple[Path, str]:
    """Returns the path of `source`, and "verified" if it was on disk or "fetched"; raises DataError as `read`."""
    if (path := locate(source)) is None:
        return fetch(source)[0], "fetched"
    verified(source, path)
    return path, "verified"


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
    if (folder := cache_folder()) is None:
        remedy = "set XDG_CACHE_HOME, or set ATTNLAB_DATA to a folder that contains the data"
        raise DataError(f"the home folder, which would contain the data, is not known; {remedy}")
    return folder


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
        write_atomically(target, content)
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
