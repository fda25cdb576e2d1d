"""Steps whose batches differ in shape, in one compiled loop."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import jax
import numpy as np

Shapes = Mapping[str, tuple[int, ...]]  # of a batch: the shape of each of its arrays


class Steps(NamedTuple):
    """The batches of consecutive steps of every lane, as one dispatch takes them.

    `batches` holds arrays [steps, lanes, B, ...], each padded with zeros to the largest of `shapes`; `kind` [steps]
    says which of the shapes the batch of a step has, and `cut` takes the padding away again.
    """

    batches: dict[str, np.ndarray]
    kind: np.ndarray
    shapes: tuple[Shapes, ...]


def stack_steps(rows: Sequence[dict[str, np.ndarray]], shapes: Sequence[Shapes], count: int) -> Steps:
    """The batches [lanes, B, ...] of some steps as `count` of one shape: the last is repeated to fill them up.

    Raises ValueError for a batch that has none of the shapes.
    """
    kinds = [_kind(row, shapes) for row in rows]
    filled, kinds = [*rows, *[rows[-1]] * (count - len(rows))], [*kinds, *kinds[-1:] * (count - len(kinds))]
    largest = {name: np.max([shape[name] for shape in shapes], axis=0) for name in shapes[0]}
    return Steps(
        {name: np.stack([_padded(row[name], largest[name]) for row in filled]) for name in rows[0]},
        np.array(kinds, np.int32),
        tuple(shapes),
    )


def by_shape(function: Callable, shapes: Sequence[Shapes], kind: Any) -> Callable:
    """`function(model, batch, key)` of the batch without its padding: of the shape that `kind` names.

    Each shape is compiled by itself, and one of them runs.
    """
    if len(shapes) == 1:
        return function

    def run(model, batch, key):
        branches = [partial(_on_cut, function, shape) for shape in shapes]
        return jax.lax.switch(kind, branches, model, batch, key)

    return run


def _on_cut(function: Callable, shape: Shapes, model: Any, batch: dict[str, Any], key: Any) -> Any:
    return function(model, {name: x[tuple(map(slice, shape[name]))] for name, x in batch.items()}, key)


def _kind(row: dict[str, np.ndarray], shapes: Sequence[Shapes]) -> int:
    own = {name: x.shape[1:] for name, x in row.items()}
    if own not in shapes:
        raise ValueError(f"a batch has the shapes {own}, and the problem's `first_steps` have {list(shapes)}")
    return list(shapes).index(own)


def _padded(x: np.ndarray, shape: Sequence[int]) -> np.ndarray:
    """x [lanes, ...] with zeros after its end along every other axis."""
    return np.pad(x, [(0, 0), *((0, most - n) for n, most in zip(x.shape[1:], shape, strict=True))])
