"""A sequence as chunks along one axis N: what needs no state is done for all chunks at once."""

from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Shaped

from attnlab.ops.linear import Reach


def fit(size: int, T: int) -> int:
    """The size of a chunk: no longer than the sequence."""
    return max(1, min(size, T))


def cut(x: Shaped[Array, "T W"], size: int) -> Shaped[Array, "N C W"]:
    """Chunks of `size` tokens, the last filled up with zeros."""
    T, W = x.shape
    return jnp.pad(x, ((0, -T % size), (0, 0))).reshape(-(-T // size), size, W)


def reaches(block: Any, size: int) -> Reach:
    """What reaches what in every chunk of a block of the clock: a `Reach` with a leading axis N."""
    return jax.vmap(lambda chunk: Reach(chunk.pairs, chunk.sees, chunk.stays, chunk.carries))(block.cut(size))


def join(y: Shaped[Array, "N C W"], T: int) -> Shaped[Array, "T W"]:
    """The first T tokens of the chunks, as one sequence."""
    return y.reshape(-1, y.shape[-1])[:T]
