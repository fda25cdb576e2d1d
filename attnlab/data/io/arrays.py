"""Array files: npy, npz and IDX. A header is checked against the size of the file before an array is made."""

import ast
import math
import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from attnlab.data.io.archives import GZIP, ZIP, members
from attnlab.data.io.files import Damaged, DataError, given, unpacked

NUMPY = b"\x93NUMPY"
# Booleans, numbers and fixed-width text. No objects, because reading them runs code, and no records.
KINDS = re.compile("[<>|=]?(b1|[iu][1248]|f[248]|c8|c16|[SU][1-9][0-9]{0,5})")
# For these kinds, not every bit pattern is a valid element: the unsigned type to check, and its largest valid value.
LARGEST = {"b": (np.dtype("u1"), 1), "U": (np.dtype("u4"), 0x10FFFF)}
HEADER = 4096  # the largest size of an npy header, in bytes
DIMENSIONS, LONGEST = 32, 2**48  # limits on the number of dimensions, and on sizes and the number of elements
# IDX: the third byte of the file gives the type of the elements, all big-endian.
IDX = {8: "u1", 9: "i1", 11: ">i2", 12: ">i4", 13: ">f4", 14: ">f8"}


def npy(file: bytes | Path, path: str | Path = "array") -> np.ndarray:
    """Reads an .npy file of version 1 or 2.

    Args:
      file: the bytes of the file, or its path.
      path: the name to use in messages if `file` is bytes.

    Returns:
      A read-only array in the byte order of this machine.

    Raises:
      DataError: if it is not such a file, its elements are neither numbers nor fixed-width text, or the shape does not
        fit the number of bytes.
    """
    content, path = given(file, path)
    if not content.startswith(NUMPY) or len(content) < 12:
        raise DataError(f"{path} is not an npy file: it begins with {content[:8]!r}")
    version = (content[6], content[7])
    if version not in ((1, 0), (2, 0)):
        raise DataError(f"{path} has npy version {version[0]}.{version[1]}; versions 1.0 and 2.0 are supported")
    start = 10 if version == (1, 0) else 12
    length = int.from_bytes(content[8:start], "little")
    if length > min(HEADER, len(content) - start):
        raise DataError(
            f"{path} has an npy header of {length} bytes; at most {HEADER} are allowed, and the file has {len(content)}"
        )
    header = _header(content[start : start + length], path)
    body = memoryview(content)[start + length :]
    return _array(body, header["descr"], header["shape"], "F" if header["fortran_order"] else "C", path)


def npz(file: bytes | Path, path: str | Path = "archive", names: Sequence[str] = ()) -> dict[str, np.ndarray]:
    """Reads an .npz file.

    Args:
      file: the bytes of the file, or its path.
      path: the name to use in messages if `file` is bytes.
      names: names of arrays. If any are given, only these are read, and those that are missing are ignored.

    Returns:
      The arrays by their names.

    Raises:
      DataError: as `archives.members` and `npy`, and if the file contains anything but arrays.
    """
    content, path = given(file, path)
    if not content.startswith(ZIP):
        raise DataError(f"{path} is not an npz file: it begins with {content[:8]!r}")
    found = members(content, path)
    if odd := [name for name in found if not name.endswith(".npy")]:
        raise DataError(f"{path} contains {odd[0]!r}, which is not an array")
    bodies = {name.removesuffix(".npy"): body for name, body in found.items()}
    selected = [name for name in bodies if name in names or not names]
    return {name: npy(bodies[name], f"{path}, {name}.npy") for name in selected}


def idx(file: bytes | Path, path: str | Path = "array") -> np.ndarray:
    """Reads an IDX file, the format of MNIST, gzipped or plain.

    The format is two zero bytes, a byte for the type of the elements, a byte for the number of dimensions, the sizes as
    big-endian integers of four bytes, and the elements.

    Args:
      file: the bytes of the file, or its path.
      path: the name to use in messages if `file` is bytes.

    Returns:
      A read-only array in the byte order of this machine.

    Raises:
      DataError: as `npy`.
    """
    content, path = given(file, path)
    try:
        content = unpacked(content, path) if content.startswith(GZIP) else content
    except Damaged as error:
        if len(error.content) >= 4:
            _idx(error.content, path)  # raises an error that reports the expected number of bytes
        raise
    return _idx(content, path)


def _idx(content: bytes, path: str | Path) -> np.ndarray:
    """Reads the content of an IDX file that is not compressed."""
    if len(content) < 4 or content[:2] != b"\0\0" or content[2] not in IDX or not 0 < content[3] <= DIMENSIONS:
        raise DataError(f"{path} is not an IDX file: it begins with {content[:4]!r}")
    start = 4 + 4 * content[3]
    if len(content) < start:
        raise DataError(f"{path} is truncated: an IDX header of {start} bytes expected, {len(content)} found")
    shape = tuple(np.frombuffer(content, ">u4", content[3], offset=4).tolist())
    return _array(memoryview(content)[start:], IDX[content[2]], shape, "C", path)


def _header(written: bytes, path: str | Path) -> dict:
    """Returns the three fields of an npy header. It is a Python literal, and is parsed without running code."""
    try:
        header = ast.literal_eval(written.decode("latin1").strip())
        good = isinstance(header, dict) and {*header} == {"descr", "fortran_order", "shape"}
    except (ValueError, SyntaxError, TypeError, RecursionError, MemoryError):
        good = False
    if not good:
        raise DataError(f"{path} has an invalid npy header: {written[:60]!r}")
    return header


def _array(content: memoryview, kind: object, shape: object, order: str, path: str | Path) -> np.ndarray:
    """Returns the elements as an array; raises DataError if type and shape do not fit the number of bytes."""
    dtype, sizes = _dtype(kind, path), _sizes(shape, path)
    expected = math.prod(sizes) * dtype.itemsize
    if expected != len(content):
        what = f"an array of {dtype.name} with shape {sizes}"
        raise DataError(f"{path} contains {what}: {expected} bytes expected, {len(content)} found")
    if dtype.kind in LARGEST:
        unit, largest = LARGEST[dtype.kind]
        if np.frombuffer(content, unit.newbyteorder(dtype.byteorder)).max(initial=0) > largest:
            raise DataError(f"{path} contains invalid elements of type {dtype.name}")
    found = np.frombuffer(content, dtype).reshape(sizes, order="F" if order == "F" else "C")
    found = found.astype(dtype.newbyteorder("="), copy=False)
    found.flags.writeable = False
    return found


def _sizes(shape: object, path: str | Path) -> tuple[int, ...]:
    """Returns the shape of an npy header if it is a tuple of plausible sizes; else raises DataError."""
    # Booleans are integers in Python, hence `type(size) is int`. Zeros count as ones in the product, because a zero
    # could hide another size that is too large for any file.
    if not isinstance(shape, tuple) or not all(type(size) is int and 0 <= size < LONGEST for size in shape):
        raise DataError(f"{path} has an invalid shape: {str(shape)[:60]}")
    if len(shape) > DIMENSIONS or math.prod(size or 1 for size in shape) >= LONGEST:
        raise DataError(f"{path} has an invalid shape: {str(shape)[:60]}")
    return shape


def _dtype(kind: object, path: str | Path) -> np.dtype:
    """Returns the dtype of an npy header's `descr` if it is one of `KINDS`; else raises DataError."""
    if not isinstance(kind, str) or not KINDS.fullmatch(kind):
        remedy = ", because reading objects runs code; save them as text with .astype(str)" if kind == "|O" else ""
        raise DataError(
            f"{path} contains elements of type {str(kind)[:60]!r}; expected numbers or fixed-width text{remedy}"
        )
    return np.dtype(kind)
