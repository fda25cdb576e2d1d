"""PNG and JPEG files, with checks on which files are accepted."""

from __future__ import annotations

import io
import math
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from attnlab.data.io.files import DataError, contents, user_path

if TYPE_CHECKING:
    from PIL.Image import Image

FORMATS = ("JPEG", "PNG")
SUFFIXES = (".jpg", ".jpeg", ".png")  # of file names
MODES = ("1", "L", "LA", "P", "RGB", "RGBA", "CMYK", "YCbCr")  # with at most eight bits per channel
GRAY = ("1", "L", "LA")  # the modes without colours
PIXELS = 1 << 26  # the largest number of pixels, checked before decoding
ORIENTATION, UPRIGHT = 0x0112, range(0, 2)  # the EXIF tag, and its values for an image that need not be rotated


def decode(content: bytes, path: str | Path) -> Image:
    """Returns Pillow's decoded image of a JPEG or PNG file.

    Raises:
      DataError: if the content is damaged or of another format, has more than eight bits per channel or more than
        `PIXELS` pixels. Also if it has transparent pixels, because the background is not known. Also if its EXIF
        orientation is not upright, because it is not known whether boxes refer to the rotated image.
    """
    from PIL import Image, UnidentifiedImageError

    try:
        with warnings.catch_warnings():
            # Pillow warns about images that are too large. These are refused below, before decoding.
            warnings.simplefilter("ignore", Image.DecompressionBombWarning)
            found = Image.open(io.BytesIO(content), formats=FORMATS)
        if math.prod(found.size) > PIXELS or found.mode not in MODES:
            about = f"{found.width} × {found.height} pixels in mode {found.mode}"
            raise DataError(f"{path} has {about}; at most {PIXELS:,} pixels of 8 bits per channel are supported")
        found.load()
        if (orientation := found.getexif().get(ORIENTATION, 1)) not in UPRIGHT:
            raise DataError(f"{path} is stored rotated, with EXIF orientation {orientation}; save it upright")
        if found.has_transparency_data and np.asarray(found.convert("RGBA"))[..., 3].min() < 255:
            raise DataError(f"{path} has transparent pixels; save it with an opaque background")
    except DataError:
        raise
    except UnidentifiedImageError as error:
        raise DataError(f"{path} is damaged or not a JPEG or PNG: it begins with {content[:8]!r}") from error
    # Pillow's decoders raise many kinds of exceptions for invalid bytes.
    except Exception as error:
        raise DataError(f"{path} is damaged or not a JPEG or PNG: {' '.join(str(error).split())}") from error
    return found


def read(name: str, like: tuple[int, int, int]) -> np.ndarray:
    """Reads a PNG or JPEG file as an image of a given shape.

    Args:
      name: the file.
      like: the shape (H, W, C). One channel is grayscale, three are red, green and blue.

    Returns:
      The image [H W C] uint8.

    Raises:
      DataError: as `opened`, and if the image has another size. It is not resized.
    """
    path = user_path(name)
    height, width, channels = like
    picture = decode(contents(path, unpack=False), path)
    if picture.size != (width, height):
        raise DataError(f"{path} has {picture.height} × {picture.width} pixels; expected {height} × {width}")
    return _pixels(picture, channels)


def read_all(paths: Sequence[Path]) -> np.ndarray:
    """Reads PNG and JPEG files of one size.

    Returns:
      The images [N H W C] uint8. C is 1 if all files are stored in grayscale, otherwise 3 for red, green and blue.

    Raises:
      DataError: as `decode`, and if an image has another size than the first. The message names both files.
    """
    held = np.empty((len(paths), 0, 0, 1), np.uint8)
    for n, path in enumerate(paths):
        picture = decode(contents(path, unpack=False), path)
        size = picture.height, picture.width
        if not n:
            held = np.empty((len(paths), *size, 1), np.uint8)
        if size != held.shape[1:3]:
            has, needs = (" × ".join(map(str, each)) for each in (size, held.shape[1:3]))
            raise DataError(
                f"{path} has {has} pixels, but {paths[0]} has {needs}; all pictures must have the same size"
            )
        if held.shape[3] == 1 and picture.mode not in GRAY:
            held = held.repeat(3, axis=3)  # a gray pixel has three equal colours
        held[n] = _pixels(picture, held.shape[3])
    return held


def _pixels(picture: Image, channels: int) -> np.ndarray:
    """Returns the pixels [H W C] of a picture in one channel, grayscale, or in three, red, green and blue."""
    pixels = np.asarray(picture.convert("L" if channels == 1 else "RGB"))
    return pixels.reshape(picture.height, picture.width, channels)
