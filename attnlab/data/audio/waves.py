"""Uncompressed audio in wav files."""

import struct
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np

from attnlab.data.io.files import DataError, given

PCM, EXTENSIBLE = 1, 0xFFFE
OTHERS = {3: "floating-point numbers", 6: "A-law", 7: "μ-law"}  # formats that are not supported, by number
ENDLESS = 2**32 - 1  # the size that a streaming writer puts into a header, because it does not know the real one
DEPTHS = (8, 16, 24, 32)


class Wave(NamedTuple):
    """A recording."""

    samples: np.ndarray
    """The samples [T] float32, in −1 … 1."""
    rate: int
    """The number of samples per second."""


def read(file: bytes | Path, path: str | Path = "recording") -> Wave:
    """Reads a wav file of one channel, with integer samples of 8, 16, 24 or 32 bits.

    Args:
      file: the bytes of the file, or its path.
      path: the name to use in messages if `file` is bytes.

    Raises:
      DataError: if the file has another format, which the message reports, or fewer bytes than its headers say.
    """
    content, path = given(file, path)
    if content[:4] != b"RIFF" or content[8:12] != b"WAVE":
        raise DataError(f"{path} is not a wav file: it begins with {content[:12]!r}")
    chunks: dict[bytes, bytes] = {}
    for name, body in _chunks(content, path):
        if name in chunks and name in (b"fmt ", b"data"):
            raise DataError(f"{path} has two chunks {name!r}")
        chunks[name] = body
    if missing := [name for name in (b"fmt ", b"data") if name not in chunks]:
        raise DataError(f"{path} has no chunk {missing[0]!r}")
    rate, depth = _format(chunks[b"fmt "], path)
    data = chunks[b"data"]
    if not data or len(data) % (depth // 8):
        raise DataError(f"{path} has {len(data)} bytes of sound; expected a positive multiple of {depth // 8}")
    return Wave(_samples(data, depth), rate)


def _chunks(content: bytes, path: str | Path) -> Iterator[tuple[bytes, bytes]]:
    """Yields the name and the content of each chunk. Fewer than eight bytes after the last chunk are ignored."""
    at = 12
    while at + 8 <= len(content):
        name, size = struct.unpack_from("<4sI", content, at)
        body = content[at + 8 : at + 8 + size]
        if size == ENDLESS:
            raise DataError(
                f"{path}, chunk {name!r}: the header of a stream gives no size; save the recording to a file"
            )
        if len(body) < size:
            raise DataError(f"{path}, chunk {name!r}: {size} bytes expected, {len(body)} found")
        yield name, body
        at += 8 + size + size % 2  # chunks begin at even offsets


def _format(body: bytes, path: str | Path) -> tuple[int, int]:
    """Returns the sample rate and the number of bits per sample."""
    if len(body) < 16:
        raise DataError(f"{path}, chunk b'fmt ': at least 16 bytes expected, {len(body)} found")
    kind, channels, rate, _, width, depth = struct.unpack_from("<HHIIHH", body)
    if kind == EXTENSIBLE and len(body) >= 26:
        (kind,) = struct.unpack_from("<H", body, 24)
    if kind != PCM:
        held = f"{OTHERS[kind]} (format {kind})" if kind in OTHERS else f"format {kind}"
        raise DataError(f"{path} contains {held}; only uncompressed integers (format 1) are supported")
    if channels != 1:
        raise DataError(f"{path} has {channels} channels; only one channel is supported")
    if depth not in DEPTHS or width != depth // 8 or rate == 0:
        raise DataError(f"{path} has {depth}-bit samples in {width} bytes at {rate} Hz, which is not supported")
    return rate, depth


def _samples(data: bytes, depth: int) -> np.ndarray:
    """Converts integer samples to float32 in −1 … 1."""
    if depth == 8:  # the only unsigned format
        return (np.frombuffer(data, np.uint8).astype(np.float32) - 128) / 128
    if depth == 24:
        wide = np.zeros((len(data) // 3, 4), np.uint8)
        wide[:, 1:] = np.frombuffer(data, np.uint8).reshape(-1, 3)
        return wide.reshape(-1).view("<i4").astype(np.float32) / np.float32(2**31)
    return np.frombuffer(data, f"<i{depth // 8}").astype(np.float32) / np.float32(2 ** (depth - 1))
