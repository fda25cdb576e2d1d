"""Pictures in files: which ones are read at all."""

import io
import math
import warnings
from pathlib import Path
from typing import Any

import numpy as np

from attnlab.data.io.files import DataError

FORMATS = ("JPEG", "PNG")
SUFFIXES = (".jpg", ".jpeg", ".png")  # how the names of their files end
MODES = ("1", "L", "LA", "P", "RGB", "RGBA", "CMYK", "YCbCr")  # of eight bits a channel, or fewer
PIXELS = 1 << 26  # of a picture: looked at before it is unpacked
ORIENTATION, UPRIGHT = 0x0112, range(0, 2)  # the tag of EXIF, and what it holds where nothing is to be turned


def opened(content: bytes, path: str | Path) -> Any:
    """Pillow's image of a JPEG or PNG, unpacked.

    Raises DataError where it is damaged or neither, not of eight bits a channel, larger than `PIXELS`, somewhere
    transparent (on what ground?), or stored turned round (are the boxes in it?).
    """
    from PIL import Image, UnidentifiedImageError

    try:
        with warnings.catch_warnings():
            # Pillow warns of what is refused below, before a pixel is unpacked.
            warnings.simplefilter("ignore", Image.DecompressionBombWarning)
            found = Image.open(io.BytesIO(content), formats=FORMATS)
        if math.prod(found.size) > PIXELS or found.mode not in MODES:
            about = f"{found.width} × {found.height} pixels of kind {found.mode}"
            raise DataError(f"{path} has {about}: up to {PIXELS:,}, of eight bits a channel, are read")
        found.load()
        if (turned := found.getexif().get(ORIENTATION, 1)) not in UPRIGHT:
            raise DataError(f"{path} is stored turned, of EXIF orientation {turned}: save it upright")
        if found.has_transparency_data and np.asarray(found.convert("RGBA"))[..., 3].min() < 255:
            raise DataError(f"{path} has transparent pixels: save it on a ground of your choice")
    except DataError:
        raise
    except UnidentifiedImageError as error:
        raise DataError(f"{path} is damaged or no picture: no JPEG or PNG begins with {content[:8]!r}") from error
    # Whatever Pillow's readers meet in bytes that make no sense.
    except Exception as error:
        raise DataError(f"{path} is damaged or no picture: {' '.join(str(error).split())}") from error
    return found
