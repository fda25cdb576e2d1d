import gzip
import io
import pickle
import zipfile

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as drawn

from attnlab.data.io import arrays
from attnlab.data.io.files import DataError

FLAT = np.arange(6, dtype="<f4")


def saved(array, **more) -> bytes:
    file = io.BytesIO()
    np.lib.format.write_array(file, np.asanyarray(array), **more)
    return file.getvalue()


def headed(header: str, body: bytes = FLAT.tobytes(), version: bytes = b"\1\0") -> bytes:
    written = header.encode()
    return b"\x93NUMPY" + version + len(written).to_bytes(2 if version == b"\1\0" else 4, "little") + written + body


def fields(descr="'<f4'", order="False", shape="(6,)") -> str:
    return f"{{'descr': {descr}, 'fortran_order': {order}, 'shape': {shape}, }}\n"


def packed(**members: bytes) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return file.getvalue()


def idx_of(array: np.ndarray, kind: int) -> bytes:
    sizes = b"".join(size.to_bytes(4, "big") for size in array.shape)
    return bytes([0, 0, kind, array.ndim]) + sizes + array.tobytes()


def refused(read, content: bytes, match: str) -> None:
    with pytest.raises(DataError, match=match) as error:
        read(content, "here.bin")
    assert str(error.value).startswith("here.bin")
    assert "\n" not in str(error.value)
    assert len(str(error.value)) < 300


def test_the_helpers_write_valid_files():
    np.testing.assert_array_equal(arrays.npy(headed(fields())), FLAT)
    np.testing.assert_array_equal(arrays.npy(headed(fields(), version=b"\2\0")), FLAT)


kinds = st.one_of(
    drawn.boolean_dtypes(),
    drawn.integer_dtypes(endianness="?"),
    drawn.unsigned_integer_dtypes(endianness="?"),
    drawn.floating_dtypes(endianness="?"),
    drawn.unicode_string_dtypes(endianness="?", max_len=4),
    drawn.byte_string_dtypes(max_len=4),
)


@given(drawn.arrays(kinds, drawn.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=3)), st.booleans())
def test_a_saved_array_is_read_back(array, fortran):
    array = np.asarray(array, order="F" if fortran else "C")
    found = arrays.npy(saved(array))
    assert found.dtype == array.dtype.newbyteorder("=")
    assert found.dtype.isnative
    np.testing.assert_array_equal(found, array)
    assert not found.flags.writeable


@given(drawn.arrays(st.sampled_from([*arrays.IDX.values()]), drawn.array_shapes(max_dims=3, max_side=3)), st.booleans())
def test_a_written_idx_file_is_read_back(array, gzipped):
    kind = next(n for n, dtype in arrays.IDX.items() if np.dtype(dtype) == array.dtype)
    content = idx_of(array, kind)
    found = arrays.idx(gzip.compress(content, mtime=0) if gzipped else content)
    assert found.dtype.isnative
    np.testing.assert_array_equal(found, array)


def test_archives_are_read_from_bytes_and_from_a_file(tmp_path):
    both = {"edges": np.array([[0, 1], [1, 2]]), "names": np.array(["a", "böse"])}
    for save in (np.savez, np.savez_compressed):
        path = tmp_path / "graph.npz"
        save(path, **both)
        for found in (arrays.npz(path), arrays.npz(path.read_bytes())):
            assert list(found) == list(both)
            for name in both:
                np.testing.assert_array_equal(found[name], both[name])
    assert list(arrays.npz(path, names=["names"])) == ["names"]
    assert arrays.npz(path, names=["labels"]) == {}
    with pytest.raises(DataError, match=r"absent\.npz cannot be read: No such file"):
        arrays.npz(tmp_path / "absent.npz")


class Payload:
    """An object that makes the test fail when it is unpickled."""

    def __reduce__(self):
        return pytest.fail, ("unpickled",)


def test_object_arrays_are_refused_without_unpickling():
    objects = np.array([Payload()], dtype=object)
    refused(arrays.npy, saved(objects, allow_pickle=True), "elements of type '|O'")
    refused(arrays.npz, packed(**{"a.npy": saved(objects, allow_pickle=True)}), "elements of type")
    refused(arrays.npz, pickle.dumps(Payload()), "is not an npz file")
    refused(arrays.npy, pickle.dumps(Payload()), "is not an npy file")
    refused(arrays.npz, packed(a=pickle.dumps(Payload())), "contains 'a', which is not an array")


NO_ELEMENTS = """'|O' 'O' '|V8' [('x','<f4')] '<f4,<f4' '(2,)<f4' '<M8[s]' '<f16' '<g' 'a4' 'U' '<U0' '<U9999999' '<f3'
4 None ('<f4',{}) 'float32' '__import__("os")' ''"""


@pytest.mark.parametrize("descr", NO_ELEMENTS.split())
def test_only_numbers_and_fixed_width_text_are_elements(descr):
    refused(arrays.npy, headed(fields(descr)), "expected numbers or fixed-width text")


@pytest.mark.parametrize(
    ("shape", "said"),
    [
        ("(7,)", "28 bytes expected, 24 found"),
        ("(5,)", "20 bytes expected, 24 found"),
        ("()", r"an array of float32 with shape \(\): 4 bytes expected"),
        ("(1152921504606846976,)", "an invalid shape"),
        ("(1048576, 1048576, 1048576)", "an invalid shape"),
        ("(1152921504606846976, 0)", "an invalid shape"),
        ("(281474976710655, 0, 281474976710655)", "an invalid shape"),
        ("(4294967296,)", "bytes expected, 24 found"),
        ("(-6,)", "an invalid shape"),
        ("(-2, -3)", "an invalid shape"),
        ("(True, 6)", "an invalid shape"),
        ("(6.0,)", "an invalid shape"),
        ("6", "an invalid shape"),
        ("[6]", "an invalid shape"),
        (f"({'1, ' * 33}6)", "an invalid shape"),
    ],
)
def test_a_shape_must_match_the_number_of_bytes(shape, said):
    refused(arrays.npy, headed(fields(shape=shape)), said)


@pytest.mark.parametrize(
    "header",
    [
        "",
        "{}",
        "[]",
        "{'descr': '<f4', 'fortran_order': False}",
        fields()[:-3] + "'more': 1}",
        "__import__('os').system('true')",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (lambda: 6)()}",
        "(" * 4000,
        "[" * 2000 + "]" * 2000,
        "\0" * 20,
        "é" * 20,
        "{'descr': '<f4', 'fortran_order': False, 'shape': (9" + "9" * 4300 + ",)}",
    ],
)
def test_a_broken_header_is_refused_without_running_anything(header):
    refused(arrays.npy, headed(header), "npy header")


@pytest.mark.parametrize("length", [0, 5, 8, 9, 11, 12, 40])
def test_a_truncated_header_is_refused(length):
    refused(arrays.npy, saved(FLAT)[:length], "npy")


def test_wrong_lengths_and_versions_are_refused():
    refused(arrays.npy, b"\x93NUMPY\2\0\xff\xff\xff\xff" + fields().encode(), "npy header of 4294967295 bytes")
    refused(arrays.npy, b"\x93NUMPY\3\0" + saved(FLAT)[8:], "version 3.0")
    refused(arrays.npy, b"\x93NUMPY\xff\xff" + saved(FLAT)[8:], "version 255.255")


def test_invalid_elements_are_refused():
    refused(arrays.npy, headed(fields("'|b1'"), b"\0\1\2\1\0\1"), "invalid elements of type bool")
    refused(arrays.npy, headed(fields("'<U1'", shape="(1,)"), b"\0\0\x11\0"), "invalid elements of type str")
    refused(arrays.npy, headed(fields("'>U1'", shape="(1,)"), b"\0\x11\0\0"), "invalid elements of type str")


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "not an IDX"),
        (b"\0\0\x08", "not an IDX"),
        (b"\0\0\x08\0", "not an IDX"),
        (b"\0\0\x07\1\0\0\0\1a", "not an IDX"),
        (b"\0\1\x08\1\0\0\0\1a", "not an IDX"),
        (b"\0\0\x08\xff" + b"\0" * 2000, "not an IDX"),
        (b"\0\0\x08\2\0\0\0\1", "header of 12 bytes expected, 8 found"),
        (b"\0\0\x08\1\0\0\0\4abc", "4 bytes expected, 3 found"),
        (b"\0\0\x08\1\0\0\0\2abc", "2 bytes expected, 3 found"),
        (b"\0\0\x0e\1\0\0\0\1abcd", "8 bytes expected, 4 found"),
        (b"\0\0\x08\3" + b"\xff" * 12 + b"a", "an invalid shape"),
        (b"\0\0\x08\1\xff\xff\xff\xffa", "4294967295 bytes expected, 1 found"),
        # For a compressed file, the message also gives the expected number of bytes if the header can be read.
        (gzip.compress(b"\0\0\x08\1\0\0\0\4abc", mtime=0)[:-3], "4 bytes expected, 3 found"),
        (gzip.compress(b"\0\0\x08\2\0\0\0\1", mtime=0)[:-3], "header of 12 bytes expected, 8 found"),
        (gzip.compress(b"\0\0\x08\1\0\0\0\3abc", mtime=0)[:-3], "truncated or damaged after 11 bytes"),
        (gzip.compress(b"\0\0\x08", mtime=0)[:-3], "truncated or damaged after 3 bytes"),
    ],
)
def test_an_idx_file_that_is_wrong_is_refused(content, said):
    refused(arrays.idx, content, said)


def test_a_decompression_bomb_is_refused(monkeypatch):
    monkeypatch.setattr("attnlab.data.io.files.FREE", 1 << 12)
    monkeypatch.setattr("attnlab.data.io.files.RATIO", 10)
    bomb = gzip.compress(b"\0\0\x08\1\0\1\0\0" + b"\0" * (1 << 16))
    refused(arrays.idx, bomb, "decompresses to more than 4,096 bytes")


@given(st.data())
def test_any_damage_is_refused_or_gives_an_array(data):
    content = bytearray(data.draw(st.sampled_from([saved(FLAT), packed(**{"a.npy": saved(FLAT)}), idx_of(FLAT, 13)])))
    for _ in range(data.draw(st.integers(1, 4))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    content = bytes(content[: data.draw(st.integers(0, len(content)))])
    for read in (arrays.npy, arrays.npz, arrays.idx):
        try:
            found = read(content)
        except DataError:
            pass
        else:
            assert all(each.size <= 24 for each in (found.values() if isinstance(found, dict) else [found]))


def test_fashion_mnist(published):
    folder = published("fashion_mnist")
    images, labels = (arrays.idx(folder / f"t10k-{name}-ubyte.gz") for name in ("images-idx3", "labels-idx1"))
    assert (images.shape, images.dtype) == ((10_000, 28, 28), np.uint8)
    assert np.bincount(labels).tolist() == [1000] * 10


def test_cora(published):
    path = published("cora") / "cora.npz"
    found = arrays.npz(path)
    with np.load(path, allow_pickle=False) as theirs:
        assert set(found) == set(theirs)
        for name in theirs:
            np.testing.assert_array_equal(found[name], theirs[name])
    assert found["labels"].shape == (2708,)
    assert found["attr_shape"].tolist() == [2708, 1433]
