from io import BytesIO

import numpy as np
import pytest
from PIL import Image

from attnlab.data.images import photos, scenes
from attnlab.data.io.files import DataError
from tests.data.images.test_idx_files import drawn


def saved(picture, kind="PNG", **more):
    file = BytesIO()
    picture.save(file, kind, **more)
    return file.getvalue()


def deep():
    """Returns a greyscale image of 16 bits."""
    return saved(Image.fromarray(np.linspace(0, 65_535, 20).astype(np.uint16).reshape(4, 5)))


def clear(alpha):
    return saved(Image.new("RGBA", (5, 4), (255, 0, 0, alpha)))


def turned(orientation):
    exif = Image.Exif()
    exif[photos.ORIENTATION] = orientation
    return saved(Image.new("RGB", (5, 4)), "JPEG", exif=exif)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (deep(), r"a\.png has 5 × 4 pixels in mode I;16; at most .* pixels of 8 bits per channel are supported"),
        (clear(0), r"a\.png has transparent pixels; save it with an opaque background"),
        (clear(254), r"a\.png has transparent pixels"),
        (turned(6), r"a\.png is stored rotated, with EXIF orientation 6; save it upright"),
        (saved(Image.new("L", (5, 4)), "GIF"), r"a\.png is damaged or not a JPEG or PNG: it begins with b'GIF87a"),
    ],
)
def test_ambiguous_images_are_refused_with_and_without_boxes(tmp_path, content, words):
    (tmp_path / "a.png").write_bytes(content)
    with pytest.raises(DataError, match=words):
        photos.read(str(tmp_path / "a.png"), (4, 5, 1))
    with pytest.raises(DataError, match=words):
        scenes.picture(tmp_path / "a.png", "a.png", (4, 5))


@pytest.mark.parametrize("content", [clear(255), turned(1)])
def test_an_opaque_upright_image_is_read(content):
    assert photos.decode(content, "a").size == (5, 4)


def test_a_picture_is_read_from_a_file(tmp_path):
    pixels = drawn(1, (4, 5, 3))[0][0]
    Image.fromarray(pixels).save(tmp_path / "a.png")
    np.testing.assert_array_equal(photos.read(str(tmp_path / "a.png"), (4, 5, 3)), pixels)
    assert photos.read(str(tmp_path / "a.png"), (4, 5, 1)).shape == (4, 5, 1)
    with pytest.raises(DataError, match=r"a.png has 4 × 5 pixels; expected 5 × 4"):
        photos.read(str(tmp_path / "a.png"), (5, 4, 1))
    (tmp_path / "b.png").write_bytes(b"no picture")
    for name, words in {
        "b.png": "is damaged or not a JPEG or PNG",
        "gone.png": "No such file",
        "": "Is a directory",
    }.items():
        with pytest.raises(DataError, match=words):
            photos.read(str(tmp_path / name), (4, 5, 1))
