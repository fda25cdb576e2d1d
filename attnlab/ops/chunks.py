"""A sequence as chunks along one axis N: what needs no state is done for several chunks at once."""

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Shaped

from attnlab.ops.linear import Visibility
from attnlab.ops.mask import Places

# Chunks at once: more would not stay near the processor.
TOGETHER = 4


def chunk_size(size: int, T: int) -> int:
    """The size of a chunk: no longer than the sequence."""
    return max(1, min(size, T))


def pad_to_multiple(x: Shaped[Places, "T ..."], size: int, mode: Any = "constant") -> Shaped[Places, "S ..."]:
    """With rows behind it up to a multiple of `size`: of zeros, or by `mode` of `jnp.pad`. numpy's stays numpy's."""
    width = [(0, -x.shape[0] % size)] + [(0, 0)] * (x.ndim - 1)
    if width[0][1] == 0:
        return x
    return np.pad(x, width, mode) if isinstance(x, np.ndarray) else jnp.pad(x, width, mode)


def split_chunks(x: Shaped[Places, "T ..."], size: int, mode: Any = "constant") -> Shaped[Places, "N C ..."]:
    """Chunks of `size` rows, the last `pad_to_multiple`."""
    return pad_to_multiple(x, size, mode).reshape(-1, size, *x.shape[1:])


def sum_chunks(f: Callable, columns: tuple[Shaped[Places, "T ..."], ...], size: int) -> Any:
    """Σ f(columns) over chunks of at most `size` rows, f zero for rows of zeros. A gradient computes f again."""
    if size >= len(columns[0]):
        return f(*columns)
    again = jax.checkpoint(f, prevent_cse=False)
    add = lambda sums, here: (jax.tree.map(jnp.add, sums, again(*here)), None)
    chunks = _alike(columns, size)
    empty = jax.tree.map(lambda x: jnp.zeros(x.shape, x.dtype), jax.eval_shape(f, *(x[0] for x in chunks)))
    return jax.lax.scan(add, empty, chunks)[0]


def map_chunks(f: Callable, columns: tuple[Shaped[Places, "T ..."], ...], size: int) -> Shaped[Array, "T ..."]:
    """f(columns), a row for a row, in chunks of at most `size` rows. A gradient computes f again."""
    if size >= len(columns[0]):
        return f(*columns)
    again = jax.checkpoint(f, prevent_cse=False)
    found = jax.lax.map(lambda here: again(*here), _alike(columns, size))
    return found.reshape(-1, *found.shape[2:])[: len(columns[0])]


def _alike(columns: tuple[Shaped[Places, "T ..."], ...], size: int) -> tuple[Shaped[Places, "N C ..."], ...]:
    """As few chunks of at most `size` rows as may be, none with much filled up."""
    T = len(columns[0])
    return tuple(split_chunks(x, math.ceil(T / math.ceil(T / size))) for x in columns)


def chunk_visibility(block: Any, size: int) -> Visibility:
    """What reaches what in every chunk of a block of the clock: a `Visibility` with a leading axis, N or, where all
    chunks are alike, 1.
    """
    reach, cuts = (
        lambda chunk: Visibility(chunk.pairs, chunk.state_visible, chunk.enters_state, chunk.state_survives),
        block.cut(size),
    )
    if not block.plain:
        return jax.vmap(reach)(cuts)
    return jax.tree.map(lambda x: x[None], reach(jax.tree.map(lambda x: x[0], cuts)))


def scan_chunks(
    absorb: Callable, state: Float[Array, "K V"], columns: tuple[Float[Array, "T _"], ...], block: Any, size: int
) -> tuple[Float[Array, "T V"], Float[Array, "K V"]]:
    """`absorb(state, chunks of the columns, reach) -> (chunks of y, state)`, a few chunks of `size` tokens at a time.

    `block` is the tokens' place in time, a block of the clock. A gradient keeps the states between calls, and
    computes the rest again: on a CPU that is faster than fetching it.
    """
    T = block.keep.shape[0]
    size = chunk_size(size, T)
    columns = tuple(x.astype(state.dtype) for x in columns)

    def some(state, here):
        columns, block = here
        y, state = absorb(state, tuple(split_chunks(x, size) for x in columns), chunk_visibility(block, size))
        return state, y.reshape(-1, y.shape[2])

    if size * TOGETHER >= T:
        state, y = some(state, (columns, block))
        return y[:T], state
    group = tuple(split_chunks(x, size * TOGETHER) for x in columns), block.cut(size * TOGETHER)
    state, y = jax.lax.scan(partial(jax.checkpoint, prevent_cse=False)(some), state, group)
    return y.reshape(-1, y.shape[2])[:T], state
