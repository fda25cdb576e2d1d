"""The pictures that a run kept of what its model answered."""

from __future__ import annotations

import binascii
from base64 import b64decode, b64encode
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np

from attnlab.lab.folder import FolderError, RunFolder
from attnlab.tasks.base import Problem

FIRST = 16  # test examples that are shown
PNG = b"\x89PNG\r\n\x1a\n"


@dataclass(frozen=True)
class Picture:
    """A picture as PNG, and what stands below it."""

    caption: str
    png: bytes


def shown(model: Any, problem: Problem) -> dict[str, Any] | None:
    """What a trained model answers to the first test examples, drawn: `pictures.json`. None where nothing is drawn.

    {"pictures": [{"caption", "png" (base64)}]}.
    """
    if type(problem).pictures is Problem.pictures:
        return None
    batch = {name: np.asarray(values)[:FIRST] for name, values in problem.examination("test", FIRST)[0].items()}
    answer = jax.tree.map(np.asarray, jax.jit(problem.answer)(model, batch))
    drawn = problem.pictures(batch, answer)
    return {"pictures": [{"caption": name, "png": b64encode(png).decode()} for name, png in drawn.items()]}


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
