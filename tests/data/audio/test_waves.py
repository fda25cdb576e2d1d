import io
import struct
import wave

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from attnlab.data.audio import waves
from attnlab.data.io import archives
from attnlab.data.io.files import DataError

PARTS = np.array([0, 1, -1, 100, -100, 2**15 - 1, -(2**15)])


def written(samples: np.ndarray, depth: int = 16, rate: int = 8000, channels: int = 1) -> bytes:
    """Returns a wav file of integer samples, written by Python's module `wave`."""
    wide = samples.astype("<i4") << (32 - depth)
    raw = wide.view(np.uint8).reshape(-1, 4)[:, 4 - depth // 8 :]
    file = io.BytesIO()
    with wave.open(file, "wb") as out:
        out.setnchannels(channels)
        out.setsampwidth(depth // 8)
        out.setframerate(rate)
        out.writeframes((raw ^ 128 if depth == 8 else raw).tobytes())
    return file.getvalue()


GOOD = written(PARTS)


def chunks(*parts: tuple[bytes, bytes], size: int | None = None) -> bytes:
    body = b"".join(
        name + struct.pack("<I", len(content) if size is None else size) + content for name, content in parts
    )
    return b"RIFF" + struct.pack("<I", len(body) + 4) + b"WAVE" + body


def format_of(kind=1, channels=1, rate=8000, width=2, depth=16) -> bytes:
    return struct.pack("<HHIIHH", kind, channels, rate, rate * width, width, depth)


def refused(content: bytes, match: str) -> None:
    with pytest.raises(DataError, match=match) as error:
        waves.read(content, "here.wav")
    assert str(error.value).startswith("here.wav")
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("depth", waves.DEPTHS)
def test_every_depth_comes_back_between_one_and_minus_one(depth):
    most = 2 ** (depth - 1)
    whole = np.array([0, 1, -1, most // 2, -most // 2, -most, most - 1], np.int64)
    found = waves.read(written(whole, depth, rate=11_025))
    assert found.rate == 11_025
    assert found.samples.dtype == np.float32
    np.testing.assert_allclose(found.samples, whole / most, atol=6e-8)
    assert found.samples[3] == 0.5
    assert found.samples[5] == -1


def test_a_file_and_its_bytes_are_the_same_and_other_chunks_are_passed_over(tmp_path):
    path = tmp_path / "five.wav"
    path.write_bytes(GOOD)
    data = PARTS.astype("<i2").tobytes()
    # A padding byte, which belongs to no chunk, follows a chunk of odd length.
    noted = chunks((b"LIST", b"odd")) + b"\0" + chunks((b"fmt ", format_of()), (b"data", data))[12:]
    for given_ in (path, GOOD, noted, GOOD + b"tail"):
        np.testing.assert_array_equal(waves.read(given_).samples, PARTS.astype(np.float32) / 2**15)


def test_an_extensible_header_is_read_alike():
    body = struct.pack("<HHIIHH", 0xFFFE, 1, 8000, 16000, 2, 16) + struct.pack("<HHI", 22, 16, 4)
    body += b"\1\0\0\0\0\0\x10\0\x80\0\0\xaa\0\x38\x9b\x71"
    found = waves.read(chunks((b"fmt ", body), (b"data", b"\0\x40")))
    assert found.samples.tolist() == [0.5]
    refused(
        chunks((b"fmt ", body[:24] + b"\3" + body[25:]), (b"data", b"\0\0\0\0")),
        r"contains floating-point numbers \(format 3\)",
    )


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "not a wav"),
        (b"RIFF\0\0\0\0AVI ", "not a wav"),
        (b"OggS" + GOOD[4:], "not a wav"),
        (GOOD[:12], "no chunk b'fmt '"),
        (chunks((b"fmt ", format_of())), "no chunk b'data'"),
        (chunks((b"data", b"ab")), "no chunk b'fmt '"),
        (chunks((b"data", b"ab"), (b"fmt ", format_of()[:-1])), "at least 16 bytes expected, 15 found"),
        (chunks((b"fmt ", format_of()), (b"fmt ", format_of())), "two chunks b'fmt '"),
        (GOOD[:-2], r"chunk b'data': 14 bytes expected, 12 found"),
        (GOOD[:40] + b"\xfe\xff\xff\xff" + GOOD[44:], "4294967294 bytes expected, 14 found"),
        (GOOD[:40] + b"\xff\xff\xff\xff" + GOOD[44:], "chunk b'data': the header of a stream gives no size"),
        (GOOD[:40] + b"\0\0\0\0", "0 bytes of sound"),
        (chunks((b"fmt ", format_of()), (b"data", b"abc")), "3 bytes of sound"),
        (chunks((b"fmt ", format_of(kind=3, width=4, depth=32)), (b"data", b"abcd")), "format 3"),
        (chunks((b"fmt ", format_of(kind=17)), (b"data", b"ab")), "contains format 17; only uncompressed"),
        (chunks((b"fmt ", format_of(kind=7)), (b"data", b"ab")), r"contains μ-law \(format 7\)"),
        (written(PARTS[:6], channels=2), "2 channels"),
        (chunks((b"fmt ", format_of(channels=0)), (b"data", b"ab")), "0 channels"),
        (chunks((b"fmt ", format_of(depth=12)), (b"data", b"ab")), "12-bit samples in 2 bytes"),
        (chunks((b"fmt ", format_of(width=4)), (b"data", b"abcd")), "16-bit samples in 4 bytes"),
        (chunks((b"fmt ", format_of(depth=0, width=0)), (b"data", b"ab")), "has 0-bit samples"),
        (chunks((b"fmt ", format_of(rate=0)), (b"data", b"ab")), "at 0 Hz"),
    ],
)
def test_an_unsupported_wav_file_is_refused(content, said):
    refused(content, said)


@given(st.data())
def test_any_damage_is_refused_or_gives_no_more_samples_than_there_are_bytes(data):
    content = bytearray(GOOD)
    for _ in range(data.draw(st.integers(1, 4))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    try:
        found = waves.read(bytes(content[: data.draw(st.integers(0, len(content)))]))
    except DataError:
        pass
    else:
        assert 0 < len(found.samples) <= len(GOOD)
        assert np.abs(found.samples).max() <= 1


def test_spoken_digits(published):
    found = archives.members(published("fsdd") / "recordings.tar.xz")
    assert len(found) == 3000
    name = "recordings/7_jackson_32.wav"
    read = waves.read(found[name], name)
    with wave.open(io.BytesIO(found[name])) as theirs:
        raw = np.frombuffer(theirs.readframes(theirs.getnframes()), "<i2")
    assert read.rate == 8000
    np.testing.assert_array_equal(read.samples, raw.astype(np.float32) / 2**15)
