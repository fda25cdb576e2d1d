"""Support for training steps whose batches differ in shape, in one compiled loop."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

Shapes = Mapping[str, tuple[int, ...]]  # the shape of each array of a batch, by name


class Steps(NamedTuple):
    """The batches of consecutive steps of every lane, stacked for one dispatch."""

    batches: dict[str, np.ndarray]
    """Arrays [steps, lanes, B, ...] by name, each padded with zeros to the largest of `shapes`."""
    kind: np.ndarray
    """For each step, the index in `shapes` of the shape of its batch without padding, [steps]."""
    shapes: tuple[Shapes, ...]
    """The shapes that a batch can have. `attnlab.training.state.step` removes the padding."""


def stack_steps(rows: Sequence[dict[str, np.ndarray]], shapes: Sequence[Shapes], count: int) -> Steps:
    """Stacks the batches of several steps.

    Args:
        rows: The batch of each step, with arrays [lanes, B, ...].
        shapes: The shapes that a batch of a lane can have.
        count: The number of steps in the result. The last batch is repeated to fill them.

    Raises:
        ValueError: If a batch has none of the shapes.
    """
    kinds = [_kind(row, shapes) for row in rows]
    filled, kinds = [*rows, *[rows[-1]] * (count - len(rows))], [*kinds, *kinds[-1:] * (count - len(kinds))]
    largest = {name: np.max([shape[name] for shape in shapes], axis=0) for name in shapes[0]}
    return Steps(
        {name: np.stack([_padded(row[name], largest[name]) for row in filled]) for name in rows[0]},
        np.array(kinds, np.int32),
        tuple(shapes),
    )


def _kind(row: dict[str, np.ndarray], shapes: Sequence[Shapes]) -> int:
    own = {name: x.shape[1:] for name, x in row.items()}
    if own not in shapes:
        raise ValueError(f"a batch has the shapes {own}, but those of the task's `first_steps` are {list(shapes)}")
    return list(shapes).index(own)


def _padded(x: np.ndarray, shape: Sequence[int]) -> np.ndarray:
    """Returns x [lanes, ...] with zeros appended along every axis except the first."""
    return np.pad(x, [(0, 0), *((0, most - n) for n, most in zip(x.shape[1:], shape, strict=True))])
