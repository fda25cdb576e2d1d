"""The pictures that a run kept of what its model answered."""

from __future__ import annotations

import binascii
from base64 import b64decode
from dataclasses import dataclass
from typing import Any

from attnlab.lab.runs.run_folder import FolderError, RunFolder

PNG = b"\x89PNG\r\n\x1a\n"


@dataclass(frozen=True)
class Picture:
    """A picture as PNG, and what stands below it."""

    caption: str
    png: bytes


def pictures(run: RunFolder) -> tuple[Picture, ...]:
    """What `pictures.json` holds; nothing where there is none. FolderError for what is no picture, naming the file."""
    found = run.read("pictures") or {"pictures": []}
    return tuple(_picture(entry, f"{run.file('pictures')}: picture {n}") for n, entry in enumerate(found["pictures"]))


def _picture(entry: Any, where: str) -> Picture:
    entry = entry if isinstance(entry, dict) else {}
    caption, content = entry.get("caption"), entry.get("png")
    try:
        png = b64decode(content if isinstance(content, str) else "", validate=True)
    except (ValueError, binascii.Error) as error:
        raise FolderError(f"{where} is no base64") from error
    if not isinstance(caption, str) or not png.startswith(PNG):
        raise FolderError(f"{where} must be a caption and a PNG")
    return Picture(caption, png)
