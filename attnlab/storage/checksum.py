"""Checksums in JSON, so that a flipped bit, a changed digit, a lost row or another run's file is detected on reading.

The first field of an object is a sha256. It covers the owner and the object's bytes, with zeros in the place of
the digest. The last field of a row is the CRC-32 of the bytes before it, continued from the CRC-32 of the row
before. The checksums detect damage. They do not protect against someone who recomputes them.
"""

from __future__ import annotations

import hashlib
import re
import zlib

OBJECT, ROW = "sha256", "crc32"
_BLANK = b"0" * 64
_OBJECT_PATTERN = re.compile(rb'\A(\{\s*"sha256": ")([0-9a-f]{64})(".*)\Z', re.DOTALL)
_ROW = re.compile(rb'\A(\{.*), "crc32": "([0-9a-f]{8})"\}\Z', re.DOTALL)
_OLDER = "was altered, or written by an older attnlab"


def with_checksum(content: bytes, owner: bytes = b"") -> bytes:
    """Add the checksum to the bytes of a JSON object of `owner`.

    >>> with_checksum(b'{"step": 3}')[:24]
    b'{"sha256": "492c636bfddc'
    """
    space = re.match(rb"\{(\s*)", content)[1]  # pyright: ignore[reportOptionalSubscript]
    fields = content[1 + len(space) :]
    comma = b"" if fields.startswith(b"}") else b"," + (space or b" ")
    begun, rest = b"{" + space + b'"sha256": "', b'"' + comma + fields
    return begun + _digest(owner, begun + _BLANK + rest) + rest


def checksum(content: bytes) -> bytes:
    """Return the sha256 in the first field of an object, as hexadecimal digits, or b"" if it has none."""
    found = _OBJECT_PATTERN.match(content)
    return found[2] if found else b""


def find_damage(content: bytes, owner: bytes = b"") -> str | None:
    """Check an object that `with_checksum` wrote.

    Args:
        content: The bytes of the object.
        owner: The owner that was given to `with_checksum`.

    Returns:
        What is wrong with the object, in words, or None if it is intact.
    """
    found = _OBJECT_PATTERN.match(content)
    if found is None:
        return f"the checksum {OBJECT} is missing, so the file {_OLDER}"
    if _digest(owner, found[1] + _BLANK + found[3]) != found[2]:
        return f"the checksum {OBJECT} does not match, so the file was altered, or belongs to another run"
    return None


def row_with_checksum(row: bytes, before: bytes = b"") -> bytes:
    """Add the checksum to a JSON object on one line that has at least one field.

    Args:
        row: The bytes of the object.
        before: The bytes of the row before, or of the owner for the first row.

    >>> row_with_checksum(b'{"step": 3}')
    b'{"step": 3, "crc32": "d3a4e216"}'
    """
    return row[:-1] + b', "crc32": "' + _sum(row[:-1], before) + b'"}'


def find_row_damage(row: bytes, before: bytes = b"") -> str | None:
    """Return what is wrong with a row that should follow the row (or the owner) `before`, or None if it is intact."""
    found = _ROW.match(row)
    if found is None:
        return f"the checksum {ROW} is missing, so the line {_OLDER}"
    if _sum(found[1], before) != found[2]:
        return f"the checksum {ROW} does not match, so this or an earlier line was altered, or belongs to another run"
    return None


def _digest(owner: bytes, content: bytes) -> bytes:
    return hashlib.sha256(owner + content).hexdigest().encode()


def _sum(content: bytes, before: bytes) -> bytes:
    found = _ROW.match(before)
    begin = int(found[2], 16) if found else zlib.crc32(before)
    return f"{zlib.crc32(content, begin):08x}".encode()
