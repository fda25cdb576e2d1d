"""One example of a task as a model reads it, for computing and labelling the model's attention maps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

if TYPE_CHECKING:
    from jaxtyping import Array


@dataclass(frozen=True)
class TaskMaps:
    """Which attention maps of a trained model are stored with a run and shown in its report."""

    kind: Literal["cross", "encoder", "decoder", "image", "graph"]
    """The kind of the pictures, as stored in `maps.json`."""
    attention: str = ""
    """The name of the attention. For a graph it is not read."""
    answered: bool = False
    """Whether `TextInterface.example` needs the answer of the model."""
    whole: bool = False
    """Whether maps are stored whole. Otherwise only their first positions are stored."""


@dataclass(frozen=True)
class ImageAxis:
    """The axis of a map along the positions of an image. The model's configuration says how many they are."""

    height: int
    """The height of the image in pixels."""
    width: int
    """The width of the image in pixels."""


Axis = Sequence[str] | ImageAxis


@dataclass(frozen=True)
class ModelExample:
    """One example: the inputs of a model, and what lies along the axes of its attention maps."""

    inputs: tuple[np.ndarray | Array, ...]
    """The model's inputs, without a batch axis."""
    axes: Mapping[str, tuple[Axis, Axis]]
    """What lies along rows and columns, by the name of the attention.

    Rows are the queries: what is written or the positions themselves. Columns are what is read. Padding follows the
    symbols and is not included.
    """
    nodes: tuple[int, ...] = ()
    """The nodes of a graph that are shown, in the order of the symbols."""
    rows: tuple[str, ...] = ()
    """The rows of the map that the report shows, as it names them, if otherwise than in `axes`."""


def places(columns: int, rows: int) -> list[str]:
    """Returns the names of an image's positions, row by row: "1,1", "1,2"."""
    return [f"{row},{column}" for row in range(1, rows + 1) for column in range(1, columns + 1)]
