"""Parts of a decoding state that belong to one query head, where several query heads share keys and values."""

from __future__ import annotations

from dataclasses import dataclass

import jax
from jaxtyping import Array, PyTree

from attnlab.ops.tree import pytree


@pytree
@dataclass(frozen=True)
class PerQueryHead:
    """Marks an array of a memory that differs by query head. All other arrays are shared with the key head."""

    value: Array | int
    """The array of one query head. In a pytree of axes for `jax.vmap`, an axis."""


def query_head_axes(state: PyTree) -> PyTree:
    """Returns the axes of `jax.vmap` over the query heads of one key head, for every array of a state."""
    axis = lambda leaf: PerQueryHead(0) if isinstance(leaf, PerQueryHead) else None
    return jax.tree.map(axis, state, is_leaf=lambda leaf: isinstance(leaf, PerQueryHead))
