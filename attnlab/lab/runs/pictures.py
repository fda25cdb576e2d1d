"""The pictures of a model's answers that a run kept."""

from __future__ import annotations

import binascii
from base64 import b64decode
from dataclasses import dataclass

from attnlab.lab.runs.run_folder import FolderError, RunFolder

PNG = b"\x89PNG\r\n\x1a\n"


@dataclass(frozen=True)
class Picture:
    """A picture with its caption."""

    caption: str
    """The text below the picture."""
    png: bytes
    """The picture as a PNG file."""


def pictures(run: RunFolder) -> tuple[Picture, ...]:
    """Read the pictures in `pictures.json`, none if it is missing. Raises FolderError for an invalid picture."""
    found = run.read("pictures") or {"pictures": []}
    return tuple(_picture(entry, f"{run.file('pictures')}: picture {n}") for n, entry in enumerate(found["pictures"]))


def _picture(entry: object, where: str) -> Picture:
    """Check and decode one entry of `pictures.json`."""
    entry = entry if isinstance(entry, dict) else {}
    caption, content = entry.get("caption"), entry.get("png")
    try:
        png = b64decode(content if isinstance(content, str) else "", validate=True)
    except (ValueError, binascii.Error) as error:
        raise FolderError(f"{where} is not valid base64") from error
    if not isinstance(caption, str) or not png.startswith(PNG):
        raise FolderError(f"{where} must have a caption and a PNG file")
    return Picture(caption, png)
