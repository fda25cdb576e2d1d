"""Processes a sequence as chunks along one axis N; work that needs no state is done for several chunks at once."""

import math
from collections.abc import Callable
from functools import partial

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PyTree, Shaped

from attnlab.ops.linear import Visibility
from attnlab.ops.mask import ArrayOrNumpy
from attnlab.ops.split import split_chunks
from attnlab.ops.token_block import TokenBlock
from attnlab.ops.varying import varying_like

# Chunks that are processed at once. More would not stay in the caches of a processor.
TOGETHER = 4


def chunk_size(size: int, T: int) -> int:
    """Returns the size of a chunk, at most the length of the sequence and at least 1."""
    return max(1, min(size, T))


def sum_chunks(f: Callable, columns: tuple[Shaped[ArrayOrNumpy, "T ..."], ...], size: int) -> PyTree:
    """Returns Σ f(*columns) over chunks of at most `size` rows.

    The gradient recomputes f for each chunk.

    Args:
      f: a function of one chunk of each column. It must be zero for rows of zeros, with which the last chunk is padded.
      columns: arrays of the same length T.
      size: largest number of rows per chunk.

    Returns:
      The sum, a tree like the result of f.
    """
    if size >= len(columns[0]):
        return f(*columns)
    again = jax.checkpoint(f, prevent_cse=False)
    add = lambda sums, here: (jax.tree.map(jnp.add, sums, again(*here)), None)
    chunks = _alike(columns, size)
    empty = jax.tree.map(lambda x: jnp.zeros(x.shape, x.dtype), jax.eval_shape(f, *(x[0] for x in chunks)))
    return jax.lax.scan(add, varying_like(empty, chunks), chunks)[0]


def map_chunks(f: Callable, columns: tuple[Shaped[ArrayOrNumpy, "T ..."], ...], size: int) -> Shaped[Array, "T ..."]:
    """Returns f(*columns), computed in chunks of at most `size` rows.

    The gradient recomputes f for each chunk.

    Args:
      f: a function of one chunk of each column that returns one row per row.
      columns: arrays of the same length T.
      size: largest number of rows per chunk.

    Returns:
      The rows [T …].
    """
    if size >= len(columns[0]):
        return f(*columns)
    again = jax.checkpoint(f, prevent_cse=False)
    results = jax.lax.map(lambda part: again(*part), _alike(columns, size))
    return results.reshape(-1, *results.shape[2:])[: len(columns[0])]


def _alike(
    columns: tuple[Shaped[ArrayOrNumpy, "T ..."], ...], size: int
) -> tuple[Shaped[ArrayOrNumpy, "N C ..."], ...]:
    """Splits columns into as few equal chunks of at most `size` rows as possible, with little padding."""
    T = len(columns[0])
    return tuple(split_chunks(x, math.ceil(T / math.ceil(T / size))) for x in columns)


def chunk_visibility(block: TokenBlock, size: int) -> Visibility:
    """Returns the visibility within every chunk of a block of tokens.

    Args:
      block: a `TokenBlock`.
      size: tokens per chunk.

    Returns:
      A `Visibility` with a leading axis: N, or 1 if it is the same for all chunks.
    """
    parts = block.cut(size)
    if not block.plain:
        return jax.vmap(lambda part: part.visibility)(parts)
    return jax.tree.map(lambda x: x[None], jax.tree.map(lambda x: x[0], parts).visibility)


def scan_chunks(
    update: Callable,
    state: PyTree[Float[Array, "..."]],
    columns: tuple[Float[Array, "T _"], ...],
    block: TokenBlock,
    size: int,
) -> tuple[Float[Array, "T V"], PyTree[Float[Array, "..."]]]:
    """Scans a state over chunks, a few chunks at a time.

    The gradient keeps the states between calls of `update` and recomputes the rest. On a CPU this is faster than
    loading saved values.

    Args:
      update: a function `(state, columns, visibility) -> (y, state)` of several chunks [N C …].
      state: the state before the tokens, one array or a tree of arrays of one dtype.
      columns: arrays of T rows, cast to the dtype of the state.
      block: the `TokenBlock` of the tokens: their positions, segments and padding.
      size: tokens per chunk.

    Returns:
      The outputs [T V] and the state after the tokens.
    """
    T = block.keep.shape[0]
    size = chunk_size(size, T)
    # Sums within a chunk are then taken in the precision of the state, too.
    columns = tuple(x.astype(jax.tree.leaves(state)[0].dtype) for x in columns)
    state = varying_like(state, (columns, block))

    def some(state, here):
        columns, block = here
        y, state = update(state, tuple(split_chunks(x, size) for x in columns), chunk_visibility(block, size))
        return state, y.reshape(-1, y.shape[2])

    if size * TOGETHER >= T:
        state, y = some(state, (columns, block))
        return y[:T], state
    group = tuple(split_chunks(x, size * TOGETHER) for x in columns), block.cut(size * TOGETHER)
    state, y = jax.lax.scan(partial(jax.checkpoint, prevent_cse=False)(some), state, group)
    return y.reshape(-1, y.shape[2])[:T], state
