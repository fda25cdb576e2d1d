"""Members of tar and zip archives, read into memory. An archive may come from anyone and is not trusted.

Only plain files and folders are accepted, and only names that stay inside of a folder. Links, devices and pipes are
refused. The "data" filter of `tarfile` allows links that stay inside, but no data set needs them, and past attacks on
that filter used them.
"""

import io
import lzma
import stat
import struct
import tarfile
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path, PurePosixPath, PureWindowsPath

from attnlab.data.io.files import BLOCK, DataError, given, room, too_much, unpacked

MEMBERS = 100_000  # the largest number of members, including folders
DICTIONARY = 1 << 27  # bytes of memory that the xz decompressor may use; the largest preset uses half of it
GZIP, XZ, ZIP = b"\x1f\x8b", b"\xfd7zXZ\0", (b"PK\x03\x04", b"PK\x05\x06")
ZEROS = 512  # the least number of zero bytes at the end of a tar
_BROKEN = (
    *(tarfile.TarError, zipfile.BadZipFile, lzma.LZMAError, zlib.error, EOFError, OSError),
    # zipfile and tarfile also raise these for headers that are invalid or use unsupported features.
    *(ValueError, RuntimeError, NotImplementedError, OverflowError, LookupError, struct.error),
)


def members(archive: bytes | Path, path: str | Path = "archive") -> dict[str, bytes]:
    """Returns the files of an archive by their names, in the order of the archive.

    Args:
      archive: a zip or a tar, plain, gzipped or in xz; its bytes or its path.
      path: the name to use in messages if `archive` is bytes.

    Raises:
      DataError: if the archive is damaged or cut short, or has more than `MEMBERS` members. Also if a member is neither
        a plain file nor a folder, is named twice, or its name leads out of a folder. Also if the archive decompresses
        to more than `files.room` allows; this is counted while reading, whatever the headers say.
    """
    content, path = given(archive, path)
    found: dict[str, bytes] = {}
    try:
        for name, body in (_zip if content.startswith(ZIP) else _tar)(content, path):
            if name in found:
                raise DataError(f"{path} contains {name!r} twice")
            found[name] = body
    except _BROKEN as error:
        if not _begins_as_archive(content):
            raise DataError(f"{path} is neither a folder nor an archive (zip or tar)") from error
        raise DataError(f"{path} is a damaged archive: {' '.join(str(error).split())}") from error
    folders = {str(folder) for name in found for folder in PurePosixPath(name).parents}
    if both := folders & found.keys():
        raise DataError(f"{path} contains {both.pop()!r} as a file and as a folder")
    return found


def _begins_as_archive(content: bytes) -> bool:
    """Returns whether the first bytes are those of a zip, a tar, or compressed content."""
    return content.startswith((GZIP, XZ, *ZIP)) or content[257:262] == b"ustar"


def _tar(packed: bytes, path: str | Path) -> Iterator[tuple[str, bytes]]:
    """Yields the name and the content of each file of a tar."""
    if packed.startswith(GZIP):
        content = unpacked(packed, path)
    else:
        content = _unpacked_xz(packed, path) if packed.startswith(XZ) else packed
    with tarfile.open(fileobj=io.BytesIO(content), mode="r:") as tar:
        for count, member in enumerate(tar, start=1):
            name = _inside(member.name, count, path)
            if member.isdir():
                continue
            if not member.isreg() or member.issparse() or member.size < 0:
                raise DataError(f"{path}: {name!r} is not a regular file but {_kind(member)}")
            body = content[member.offset_data : member.offset_data + member.size]
            if len(body) < member.size:
                raise DataError(f"{path}: {name!r} has {len(body)} bytes, but its header gives {member.size}")
            yield name, body
        # tarfile takes a damaged header for the end of the archive, so the rest must be checked.
        if len(rest := content[tar.offset :]) < ZEROS or rest.strip(b"\0"):
            raise DataError(f"{path} is damaged or truncated after {tar.offset} bytes of its content")


def _kind(member: tarfile.TarInfo) -> str:
    """Returns in words what a member is that is not a plain file."""
    if member.issym() or member.islnk():
        return f"a link to {member.linkname!r}"
    return "a pipe" if member.isfifo() else "a device" if member.isdev() else "a sparse file or of an unknown kind"


def _zip(content: bytes, path: str | Path) -> Iterator[tuple[str, bytes]]:
    """Yields the name and the content of each file of a zip."""
    left = room(len(content))
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        for count, member in enumerate(archive.infolist(), start=1):
            name = _inside(member.filename, count, path)
            mode = member.external_attr >> 16
            if stat.S_IFMT(mode) not in (0, stat.S_IFREG, stat.S_IFDIR):
                raise DataError(f"{path}: {name!r} is not a regular file but a link or a device")
            if member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
                method = f"is compressed with method {member.compress_type}"
                raise DataError(f"{path}: {name!r} {method}; only deflate is supported")
            with archive.open(member) as file:
                body = file.read(left + 1)
            left -= len(body)
            if left < 0:
                raise too_much(path, len(content))
            if len(body) != member.file_size:
                raise DataError(f"{path}: {name!r} has {len(body)} bytes, but its header gives {member.file_size}")
            if not member.is_dir():
                yield name, body


def _inside(name: str, count: int, path: str | Path) -> str:
    """Returns the name of member number `count`.

    Raises DataError if the name leads out of a folder on any system, or if there are too many members.
    """
    if count > MEMBERS:
        raise DataError(f"{path} contains more than {MEMBERS:,} files")
    windows = PureWindowsPath(name)
    if windows.anchor or ".." in windows.parts or not name.isprintable():
        raise DataError(f"{path} contains {name!r}, a name that leads out of the folder or is not printable")
    return str(PurePosixPath(name))


def _unpacked_xz(packed: bytes, path: str | Path) -> bytes:
    """Decompresses one xz stream, up to the size that `room` allows."""
    unpack, done, most = lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=DICTIONARY), bytearray(), room(len(packed))
    while not unpack.eof:
        # The first call gets the whole input. Each call returns at most one block of output.
        block = unpack.decompress(b"" if done else packed, BLOCK)
        if not block and not unpack.eof:
            raise EOFError("the xz stream ends too early")
        done += block
        if len(done) > most:
            raise too_much(path, len(packed))
    if unpack.unused_data.strip(b"\0"):
        raise EOFError("there are bytes after the end of the xz stream")
    return bytes(done)
