import gzip
import io
import lzma
import stat
import struct
import tarfile
import zipfile

import pytest
from hypothesis import given
from hypothesis import strategies as st

from attnlab.data.io import archives, files
from attnlab.data.io.files import DataError

FILES = {"set/a.txt": b"one", "set/deeper/b.bin": bytes(range(256)) * 20, "c": b""}


def tarred(*members: tarfile.TarInfo | tuple[str, bytes], pack=lambda content: content) -> bytes:
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w") as archive:
        for member in members:
            if isinstance(member, tarfile.TarInfo):
                archive.addfile(member)
                continue
            entry = tarfile.TarInfo(member[0])
            entry.size = len(member[1])
            archive.addfile(entry, io.BytesIO(member[1]))
    return pack(file.getvalue())


def zipped(*members: tuple[str | zipfile.ZipInfo, bytes], method: int = zipfile.ZIP_DEFLATED) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", method) as archive:
        for name, content in members:
            archive.writestr(name, content)
    return file.getvalue()


def entry(name: str, kind: bytes = tarfile.REGTYPE, link: str = "", **more) -> tarfile.TarInfo:
    made = tarfile.TarInfo(name)
    made.type, made.linkname = kind, link
    for field, value in more.items():
        setattr(made, field, value)
    return made


MAKERS = {
    "tar": lambda *members: tarred(*members),
    "tar.gz": lambda *members: tarred(*members, pack=gzip.compress),
    "tar.xz": lambda *members: tarred(*members, pack=lzma.compress),
    "zip": lambda *members: zipped(*members),
    "stored zip": lambda *members: zipped(*members, method=zipfile.ZIP_STORED),
}
every = pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)


def refused(content: bytes, match: str) -> None:
    with pytest.raises(DataError, match=match) as error:
        archives.members(content, "here.bin")
    assert str(error.value).startswith("here.bin")
    assert "\n" not in str(error.value)


@every
def test_files_come_back_in_their_order_from_bytes_and_from_a_file(make, tmp_path):
    content = make(*FILES.items())
    path = tmp_path / "set.bin"
    path.write_bytes(content)
    for found in (archives.members(content), archives.members(path)):
        assert found == FILES
        assert list(found) == list(FILES)


def test_folders_and_a_leading_dot_are_ignored():
    tar = tarred(entry("./", tarfile.DIRTYPE), entry("./set", tarfile.DIRTYPE), ("./set/a.txt", b"one"))
    assert archives.members(tar) == {"set/a.txt": b"one"}
    assert archives.members(zipped(("set/", b""), ("./set/a.txt", b"one"))) == {"set/a.txt": b"one"}
    assert archives.members(tarred()) == archives.members(zipped()) == {}


OUTSIDE = [
    "/etc/x",
    "../x",
    "set/../../x",
    "..",
    "C:x",
    "C:\\x",
    "\\\\host\\share\\x",
    "..\\x",
    "a\nb",
    "a\x1b[2Jb",
    "a\u202eb",
]


@pytest.mark.parametrize("name", OUTSIDE)
@every
def test_path_traversal_is_refused(make, name):
    refused(make(("good", b"1"), (name, b"2")), "leads out of the folder or is not printable")


LINKS = {
    "a symbolic link out": entry("x", tarfile.SYMTYPE, "/etc"),
    "one that stays inside": entry("x", tarfile.SYMTYPE, "good"),
    "a hard link": entry("x", tarfile.LNKTYPE, "good"),
    "a device": entry("x", tarfile.CHRTYPE, devmajor=1, devminor=5),
    "a disk": entry("x", tarfile.BLKTYPE, devmajor=8),
    "a pipe": entry("x", tarfile.FIFOTYPE),
    "sparse": entry("x", tarfile.GNUTYPE_SPARSE),
}


@pytest.mark.parametrize("member", LINKS.values(), ids=LINKS)
def test_only_plain_files_and_folders_are_members_of_a_tar(member):
    refused(tarred(("good", b"1"), member), "not a regular file|damaged")


@pytest.mark.parametrize("kind", [stat.S_IFLNK, stat.S_IFIFO, stat.S_IFCHR, stat.S_IFBLK, stat.S_IFSOCK])
def test_only_plain_files_and_folders_are_members_of_a_zip(kind):
    info = zipfile.ZipInfo("x")
    info.external_attr = (kind | 0o777) << 16
    refused(zipped((info, b"/etc")), "not a regular file")


def test_everything_refused_by_the_tarfile_data_filter_is_refused():
    hostile = [*LINKS.values(), *(entry(name) for name in OUTSIDE)]
    strict = []
    for member in hostile:
        try:
            tarfile.data_filter(member, "/nowhere")
        except tarfile.FilterError:
            strict.append(member)
            refused(tarred(member), "not a regular file|leads out|damaged")
    assert len(strict) >= 7


@every
def test_duplicate_and_conflicting_names_are_refused(make, recwarn):
    refused(make(("a", b"1"), ("b", b"2"), ("./a", b"3")), "contains 'a' twice")
    refused(make(("a", b"1"), ("a/b", b"2")), "'a' as a file and as a folder")
    refused(make(("a/b", b"1"), (".", b"2")), "as a file and as a folder|not a regular|damaged")


@every
def test_a_decompression_bomb_is_refused(make, monkeypatch):
    monkeypatch.setattr(files, "FREE", 1 << 12)
    monkeypatch.setattr(files, "RATIO", 3)
    if make is MAKERS["tar"] or make is MAKERS["stored zip"]:
        # These archives are not compressed, so their content cannot expand.
        assert len(archives.members(make(("a", b"\0" * (1 << 16))))["a"]) == 1 << 16
        return
    refused(make(*[(f"{n}", b"\0" * (1 << 14)) for n in range(4)]), "decompresses to more than 4,096 bytes")


@every
def test_an_archive_with_too_many_members_is_refused(make, monkeypatch):
    monkeypatch.setattr(archives, "MEMBERS", 5)
    assert len(archives.members(make(*[(f"{n}", b"") for n in range(5)]))) == 5
    refused(make(*[(f"{n}", b"") for n in range(6)]), "more than 5 files")


def sized(size: int) -> bytes:
    """Returns a tar whose only member claims `size` bytes, in GNU's notation for large and negative numbers."""
    header = bytearray(tarred(("a", b"abc"))[:512])
    header[124:136] = (size & (2**95 - 1) | (0x80 if size >= 0 else 0xFF) << 88).to_bytes(12, "big")
    header[148:156] = b" " * 8
    header[148:156] = b"%06o\0 " % sum(header)
    return bytes(header) + b"abc".ljust(512, b"\0") + b"\0" * 1024


@pytest.mark.parametrize("size", [2**60, 2**40, 4096, -512, -1])
def test_a_wrong_size_in_a_header_is_refused(size):
    refused(sized(size), "but its header gives|not a regular file|damaged")
    refused(gzip.compress(sized(size)), "but its header gives|not a regular file|damaged")


def test_a_correct_size_in_a_header_is_accepted():
    assert archives.members(sized(3)) == {"a": b"abc"}


def test_a_zip_that_claims_another_size_or_a_method_that_is_not_read_is_refused():
    content = zipped(("a", b"abc" * 100))
    at = content.index(b"PK\1\2") + 24
    for claimed in (2**31, 301, 299, 0):
        refused(content[:at] + struct.pack("<I", claimed) + content[at + 4 :], "but its header gives|damaged")
    for method in (zipfile.ZIP_LZMA, zipfile.ZIP_BZIP2):
        refused(zipped(("a", b"abc"), method=method), "only deflate is supported")
    secret = bytearray(zipped(("a", b"abc")))
    for at in (6, secret.index(b"PK\1\2") + 8):
        secret[at] |= 1
    refused(bytes(secret), "damaged archive: .*(encrypted|password)")


@every
def test_truncation_anywhere_is_refused(make):
    content = make(*FILES.items())
    # In a plain tar, the zeros after the first block of its end mark carry no information.
    whole = content.rstrip(b"\0") + b"\0" * 511 if make is MAKERS["tar"] else content
    for kept in {*range(0, len(whole), max(1, len(whole) // 100)), len(whole) - 1}:
        refused(whole[:kept], "damaged|but its header gives|decompresses|lacks|truncated|neither a folder")


def test_a_damaged_header_is_refused():
    good = tarred(*[(f"{n}", b"1") for n in range(3)])
    for at in range(0, 3 * 1024, 1024):
        content = bytearray(good)
        content[at + 100] ^= 1
        refused(bytes(content), "damaged")
    refused(good.rstrip(b"\0").ljust(3 * 1024, b"\0"), "damaged or truncated after 3072")


def test_an_xz_with_large_memory_or_trailing_data_is_refused(monkeypatch):
    content = lzma.compress(tarred(("a", b"1")))
    refused(content + b"more", "there are bytes after the end")
    assert archives.members(content + b"\0" * 4) == {"a": b"1"}
    monkeypatch.setattr(archives, "DICTIONARY", 1 << 16)
    refused(content, "Memory usage limit")


@given(st.data())
def test_any_damage_is_refused_or_gives_original_files(data):
    make = data.draw(st.sampled_from([*MAKERS.values()]))
    content = bytearray(make(("a", b"abc"), ("b/c", b"defg")))
    for _ in range(data.draw(st.integers(1, 4))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    try:
        found = archives.members(bytes(content))
    except DataError:
        pass
    else:
        assert len(found) <= 2
        assert sum(map(len, found.values())) <= len(content) + 7


def test_blood_cells(published):
    found = archives.members(published("bccd") / "bccd_trainval.tar.gz")
    names = found["bccd/train.txt"].decode().split()
    assert len(names) == 205
    assert all(found[f"bccd/images/{name}.jpg"].startswith(b"\xff\xd8\xff") for name in names)


@pytest.mark.parametrize("content", [b"", b"image\tlabel\n", b"\x89PNG\r\n\x1a\n" + bytes(600), b"\x80\x04" * 400])
def test_a_file_of_another_kind_is_not_called_damaged(content):
    refused(content, r"^here\.bin is neither a folder nor an archive \(zip or tar\)$")
