"""Builds hostile files, and checks that they did no harm."""

from __future__ import annotations

import gzip
import io
import lzma
import re
import signal
import struct
import tarfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.faults.count import Fault

BLOCK = 1 << 24  # bytes of zeros that are compressed once and repeated
SECONDS = 20  # time limit of a case
REFUSALS = (2, 3, 4)  # allowed exit codes of a refusal


@dataclass(frozen=True)
class Place:
    """The folder of a case. Only files in `root` may be written.

    Outside the root, `victim` is a file that must not change. `canary` is a file that any executed payload would
    create.
    """

    folder: Path

    @property
    def root(self) -> Path:
        """The folder that is passed to the tested function."""
        return self.folder / "root"

    @property
    def victim(self) -> Path:
        """A file outside the root that must not change."""
        return self.folder / "victim"

    @property
    def canary(self) -> Path:
        """A file that exists only if a payload was executed."""
        return self.folder / "canary"

    def made(self) -> Place:
        """Creates the root and the victim, and returns the place."""
        self.root.mkdir(parents=True)
        self.victim.write_text("as it was\n")
        return self

    def harm(self) -> str | None:
        """Returns a description of what was changed outside the root, or None if nothing was."""
        if self.canary.exists():
            return "the payload was executed"
        if self.victim.read_text() != "as it was\n":
            return "a file outside the root was changed"
        beside = {path.name for path in self.folder.iterdir()} - {"root", "victim"}
        return f"{beside.pop()!r} was written outside the root" if beside else None


class Payload:
    """An object that creates a file when it is unpickled."""

    def __init__(self, file: Path):
        self.file = str(file)

    def __reduce__(self):
        return open, (self.file, "w")


def refused(because: str, act: Callable[..., Any], *given: Any, **more: Any) -> str:
    """Returns the error message with which `act` refuses its arguments.

    Raises Fault unless the message is a single line that matches the pattern `because`.
    """
    try:
        act(*given, **more)
    except Exception as error:
        code = getattr(error, "exit_code", 2 if _ours(error) else None)
        line = str(error)
        if code not in REFUSALS:
            raise Fault(f"{because}: {type(error).__name__}: {line[:200]}") from error
        if "\n" in line or len(line) > 3000:
            raise Fault(f"{because}: more than one line: {line[:200]!r}") from error
        if not re.search(because, line):
            raise Fault(f"{because}: refused for another reason: {line[:300]}") from error
        return line
    raise Fault(f"{because}: it was taken")


def _ours(error: Exception) -> bool:
    trace = error.__traceback__
    while trace and trace.tb_next:
        trace = trace.tb_next
    return isinstance(error, ValueError) and bool(trace) and "attnlab" in trace.tb_frame.f_globals.get("__name__", "")


@contextmanager
def hurried() -> Iterator[None]:
    """Raises Fault if the body of the context takes too long."""

    def late(number: int, frame: Any) -> None:
        raise Fault(f"still at it after {SECONDS} s")

    before = signal.signal(signal.SIGALRM, late)
    signal.alarm(SECONDS)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def entry(name: str, kind: bytes = tarfile.REGTYPE, link: str = "", size: int = 0) -> tarfile.TarInfo:
    """Returns a tar member without content."""
    made = tarfile.TarInfo(name)
    made.type, made.linkname, made.size = kind, link, size
    return made


def tar(*members: tarfile.TarInfo | tuple[str, bytes]) -> bytes:
    """Returns a tar archive of these members."""
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w") as archive:
        for member in members:
            info, content = (member, b"") if isinstance(member, tarfile.TarInfo) else (entry(member[0]), member[1])
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
    return file.getvalue()


def tar_head(size: int) -> bytes:
    """Returns the header of a tar archive whose first member has `size` bytes."""
    return entry("zeros.bin", size=size).tobuf(tarfile.GNU_FORMAT)


def gzipped(head: bytes, size: int) -> bytes:
    """Returns `head` and `size` zeros, gzipped. The same compressed block is repeated."""
    return gzip.compress(head) + gzip.compress(bytes(BLOCK)) * (size // BLOCK)


def in_xz(head: bytes, size: int) -> bytes:
    """Returns `head` and `size` zeros in one xz stream: one block for `head`, and a repeated block for the zeros."""
    (start, first, _), (_, block, end) = _parts(head), _parts(bytes(BLOCK))
    return start + first + block * (size // BLOCK) + end


def _parts(content: bytes) -> tuple[bytes, bytes, bytes]:
    """Returns the header of a stream, its block, and its index with what follows."""
    packed = lzma.compress(content, check=lzma.CHECK_CRC32, preset=0)
    index = 4 * (int.from_bytes(packed[-8:-4], "little") + 1) + 12
    return packed[:12], packed[12:-index], packed[-index:]


def zipped(name: str, size: int, times: int = 1) -> bytes:
    """Returns a zip of a member of `size` zeros, which its directory lists `times` times."""
    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    block = packer.compress(bytes(BLOCK)) + packer.flush(zlib.Z_FULL_FLUSH)
    content, written = block * (size // BLOCK) + packer.flush(), name.encode()
    # The checksum of a bomb is not needed, because reading stops before it is verified.
    facts = zlib.crc32(bytes(size)) if size <= BLOCK else 0, len(content), size, len(written)
    head = struct.pack("<4s5H3I2H", b"PK\3\4", 20, 0, 8, 0, 33, *facts, 0) + written
    row = struct.pack("<4s6H3I5H2I", b"PK\1\2", 20, 20, 0, 8, 0, 33, *facts, 0, 0, 0, 0, 0, 0) + written
    end = struct.pack("<4s4H2IH", b"PK\5\6", 0, 0, times, times, len(row) * times, len(head) + len(content), 0)
    return head + content + row * times + end
