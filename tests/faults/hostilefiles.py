"""Hostile data files. Each case creates files in its folder and checks that each is refused for the right reason."""

from __future__ import annotations

import io
import pickle
import stat
import struct
import tarfile
import zipfile
from collections.abc import Callable

import numpy as np

from attnlab.data.audio import waves
from attnlab.data.io import archives, arrays
from attnlab.data.text.parallel import pairs
from tests.faults.count import Fault
from tests.faults.harm import Payload, Place, entry, gzipped, in_xz, refused, tar, tar_head, zipped

GIGABYTES = 4 << 30


def pickled_npy(place: Place) -> None:
    """Checks that an object array in an npy file, as np.save writes it, is refused."""
    path = place.root / "array.npy"
    np.save(path, np.array([Payload(place.canary)], object), allow_pickle=True)
    refused("elements of type '|O'", arrays.npy, path)
    refused("is not an npz", arrays.npz, path)


def pickled_npz(place: Place) -> None:
    """Checks that an object array in an npz file is refused, and that a valid array next to it is read."""
    path = place.root / "arrays.npz"
    np.savez(path, good=np.arange(3), bad=np.array([Payload(place.canary)], object))
    refused("elements of type '|O'", arrays.npz, path)
    if arrays.npz(path, names=["good"])["good"].tolist() != [0, 1, 2]:
        raise Fault("what is good in it was not read")


def pickle_named_npz(place: Place) -> None:
    """Checks that all readers refuse a pickle that is named as an npz file.

    First checks inside the root that the payload works.
    """
    armed = place.root / "armed"
    pickle.loads(pickle.dumps(Payload(armed))).close()
    if not armed.exists():
        raise Fault("the payload is dead")
    path = place.root / "arrays.npz"
    path.write_bytes(pickle.dumps(Payload(place.canary)))
    for read in (arrays.npz, arrays.npy, arrays.idx, waves.read, archives.members):
        refused("is not an? (npz|npy|IDX|wav)|nor an archive", read, path)


def _npy(header: str, content: bytes = bytes(24), version: int = 1, length: int | None = None) -> bytes:
    written = header.encode()
    size = (len(written) if length is None else length).to_bytes(2 * version, "little")
    return b"\x93NUMPY" + bytes([version, 0]) + size + written + content


def code_in_a_header(place: Place) -> None:
    """Checks that an npy header that is an expression is refused."""
    touch = f"__import__('pathlib').Path({str(place.canary)!r}).touch()"
    for header in (touch, f"{{'descr': {touch}, 'fortran_order': False, 'shape': (6,)}}"):
        refused("invalid npy header", arrays.npy, _npy(header))
    refused("elements of type", arrays.npy, _npy(f"{{'descr': {touch!r}, 'fortran_order': False, 'shape': (6,)}}"))


def many_elements(place: Place) -> None:
    """Checks that headers that claim 2^60 elements are refused."""
    for shape in ("(1152921504606846976,)", "(1048576, 1048576, 1048576)", "(1099511627776,)", "(4294967295, 0)"):
        header = f"{{'descr': '<f4', 'fortran_order': False, 'shape': {shape}}}"
        refused("an invalid shape|bytes expected, 24 found", arrays.npy, _npy(header))


def negative_shapes(place: Place) -> None:
    """Checks that headers with negative or invalid sizes are refused."""
    for shape in ("(-6,)", "(-1,)", "(-2, -3)", "(True, 6)", "(6.0,)", "6", "'6'"):
        header = f"{{'descr': '<f4', 'fortran_order': False, 'shape': {shape}}}"
        refused("an invalid shape", arrays.npy, _npy(header))


def long_header(place: Place) -> None:
    """Checks that headers of four gigabytes, and of nested brackets, are refused."""
    refused("npy header of 4294967295 bytes", arrays.npy, _npy("{}", version=2, length=2**32 - 1))
    refused("invalid npy header", arrays.npy, _npy("(" * 4000))
    refused("npy header of 60000 bytes", arrays.npy, _npy("[" * 60_000))


def idx_dimensions(place: Place) -> None:
    """Checks that IDX files whose dimensions do not match their content are refused."""
    for head in (b"\0\0\x08\3" + b"\xff" * 12, b"\0\0\x0e\1\x20\0\0\0", b"\0\0\x08\3\0\0\xea\x60\0\0\0\x1c\0\0\0\x1c"):
        refused("an invalid shape|bytes expected, 16 found", arrays.idx, head + bytes(16))
    refused("not an IDX", arrays.idx, b"\0\0\x08\xff" + b"\xff" * 1020)


def idx_bomb(place: Place) -> None:
    """Checks that a gzipped IDX file is refused if it decompresses to a thousand times its size.

    Its header claims four gigabytes.
    """
    path = place.root / "images.gz"
    path.write_bytes(gzipped(b"\0\0\x08\1\xff\xff\xff\xff", 1 << 26))
    refused("decompresses to more than", arrays.idx, path)


def corpus_bomb(place: Place) -> None:
    """Checks that a gzipped text of your own is refused if it decompresses to four gigabytes."""
    path = place.root / "corpus.tsv.gz"
    path.write_bytes(gzipped(b"a\tb\n", GIGABYTES))
    refused("decompresses to more than", pairs, str(path))


def gzip_bomb(place: Place) -> None:
    """Checks that a tar.gz of four gigabytes is refused."""
    refused("decompresses to more than", archives.members, gzipped(tar_head(GIGABYTES), GIGABYTES))


def xz_bomb(place: Place) -> None:
    """Checks that a tar.xz of four gigabytes is refused."""
    refused("decompresses to more than", archives.members, in_xz(tar_head(GIGABYTES), GIGABYTES))


def zip_bomb(place: Place) -> None:
    """Checks that decompression bombs in npz files are refused.

    The files are one of three gigabytes, one whose member is listed a thousand times, and one that claims other sizes.
    """
    refused("decompresses to more than", arrays.npz, zipped("a.npy", 3 << 30))
    refused("contains 'a.npy' twice", arrays.npz, zipped("a.npy", 1 << 24, times=1000))
    bomb = zipped("a.npy", 1 << 26)
    at = bomb.index(b"PK\1\2") + 24
    refused("but its header gives|damaged", arrays.npz, bomb[:at] + struct.pack("<I", 24) + bomb[at + 4 :])


def nested_bomb(place: Place) -> None:
    """Checks that zips of zips of bombs, four gigabytes in all, are refused.

    The inner zips stay compressed, and each is refused when it is opened.
    """
    content = zipped("a.npy", 1 << 26)
    for depth in range(3):
        file = io.BytesIO()
        with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
            for n in range(4):
                archive.writestr(f"{depth}{n}.zip", content)
        content = file.getvalue()
    for depth in (2, 1, 0):
        refused("which is not an array", arrays.npz, content)
        content = archives.members(content)[f"{depth}0.zip"]
    refused("decompresses to more than", archives.members, content)


def absolute_names(place: Place) -> None:
    """Checks that tars with absolute member names are refused."""
    for name in (str(place.victim), "/etc/passwd", "//x", "C:\\x"):
        refused("leads out of the folder", archives.members, tar(("good", b"1"), (name, b"overwritten")))


def names_upwards(place: Place) -> None:
    """Checks that tars whose member names lead to parent folders are refused."""
    for name in ("../victim", "a/../../victim", "../../home/../victim", "..", "..\\victim"):
        refused("leads out of the folder", archives.members, tar(("good", b"1"), (name, b"overwritten")))


def link_then_file(place: Place) -> None:
    """Checks that a tar with a symbolic link, and a file whose path leads through it, is refused."""
    for target in ("..", str(place.folder), "/"):
        content = tar(entry("door", tarfile.SYMTYPE, target), ("door/victim", b"overwritten"))
        refused("is not a regular file but a link", archives.members, content)


def hard_links(place: Place) -> None:
    """Checks that a tar with a hard link, followed by content for it, is refused."""
    for target in ("../victim", str(place.victim), "good"):
        content = tar(("good", b"1"), entry("x", tarfile.LNKTYPE, target), ("x", b"overwritten"))
        refused("is not a regular file but a link", archives.members, content)


def devices(place: Place) -> None:
    """Checks that tars with devices, a pipe or a sparse file are refused."""
    kinds = {tarfile.CHRTYPE: "a device", tarfile.BLKTYPE: "a device", tarfile.FIFOTYPE: "a pipe"}
    for kind, word in kinds.items():
        refused(f"is not a regular file but {word}", archives.members, tar(entry("x", kind)))
    refused("is not a regular file|damaged", archives.members, tar(entry("x", tarfile.GNUTYPE_SPARSE)))


def zip_names(place: Place) -> None:
    """Checks that zips are refused if a name leads out of the folder or a member is a link or a pipe."""
    for name, kind, because in (
        (str(place.victim), stat.S_IFREG, "leads out"),
        ("../victim", stat.S_IFREG, "leads out"),
        ("a/../../victim", stat.S_IFREG, "leads out"),
        ("door", stat.S_IFLNK, "is not a regular file"),
        ("pipe", stat.S_IFIFO, "is not a regular file"),
    ):
        file, info = io.BytesIO(), zipfile.ZipInfo("placeholder")
        info.filename, info.external_attr = name, (kind | 0o777) << 16
        with zipfile.ZipFile(file, "w") as archive:
            archive.writestr(info, str(place.folder))
        refused(because, archives.members, file.getvalue())


def long_recordings(place: Place) -> None:
    """Checks that recordings with false headers, for example of more data than the file holds, are refused."""
    head = b"RIFF\xff\xff\xff\xffWAVEfmt \x10\0\0\0" + struct.pack("<HHIIHH", 1, 1, 8000, 16000, 2, 16)
    refused("4294967294 bytes expected, 4 found", waves.read, head + b"data\xfe\xff\xff\xff\1\0\2\0")
    refused("the header of a stream gives no size", waves.read, head + b"data\xff\xff\xff\xff\1\0\2\0")
    refused("2147483648 bytes expected", waves.read, b"RIFF\4\0\0\0WAVEfmt \0\0\0\x80" + bytes(16))
    refused("65535 channels", waves.read, head.replace(b"\1\0\1\0", b"\1\0\xff\xff") + b"data\2\0\0\0\1\0")


CASES: dict[str, Callable[[Place], None]] = {
    "an object array in npy": pickled_npy,
    "an object array in npz": pickled_npz,
    "a pickle named npz": pickle_named_npz,
    "code in an npy header": code_in_a_header,
    "2^60 elements": many_elements,
    "negative shapes": negative_shapes,
    "a header of gigabytes": long_header,
    "IDX of wrong dimensions": idx_dimensions,
    "a gzipped IDX bomb": idx_bomb,
    "a gzipped text bomb": corpus_bomb,
    "a tar.gz bomb": gzip_bomb,
    "a tar.xz bomb": xz_bomb,
    "a zip bomb": zip_bomb,
    "a nested zip bomb": nested_bomb,
    "a tar with absolute names": absolute_names,
    "a tar with names upwards": names_upwards,
    "a tar with a link and a file through it": link_then_file,
    "a tar with hard links": hard_links,
    "a tar with devices and pipes": devices,
    "a zip with names that lead out": zip_names,
    "sound of a false length": long_recordings,
}
