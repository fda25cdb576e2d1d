"""Stick-breaking attention: each key takes a share of what the keys after it have left.

a_tj = σ(z_tj) Π_{j<n<t} (1 − σ(z_tn)), for the visible keys n (Tan et al. 2024, eq. 3).
"""

from collections.abc import Callable
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from attnlab.ops.chunks import chunk_size
from attnlab.ops.later_sums import later_sums
from attnlab.ops.precision import accumulation_dtype, matmul
from attnlab.ops.split import split_chunks
from attnlab.ops.varying import varying_like


def weights(scores: Float[Array, "T S"], allowed: Bool[Array, "T S"]) -> Float[Array, "T S"]:
    """Returns the weight of every pair, zero for pairs that are not allowed. Rows sum to at most one.

    Args:
      scores: scores z, with keys in their order along the last axis [T S].
      allowed: pairs that may meet [T S].
    """
    taken, left = _logarithms(scores, allowed)
    return jnp.where(allowed, jnp.exp(taken + later_sums(left)), 0)


def by_blocks(
    q: Float[Array, "T K"],
    k: Float[Array, "T K"],
    v: Float[Array, "T V"],
    scored: Callable,
    allowed: Callable,
    size: int,
) -> Float[Array, "T V"]:
    """Returns the output of a causal pass in memory linear in T, forward and backward.

    A block of queries attends to blocks of keys from the last to the first, and holds the logarithm of what is left.

    Args:
      q: queries [T K].
      k: keys [T K].
      v: values [T V].
      scored: function `(q, k, rows, columns) -> [C C]` of a block of queries and keys and of their order.
      allowed: function `(rows, columns) -> [C C]`, whether the pairs may meet.
      size: tokens per block.

    Returns:
      Outputs [T V], in at least float32.
    """
    T = q.shape[0]
    size, dtype = chunk_size(size, T), accumulation_dtype(v.dtype)
    order = np.arange(T, dtype=np.int32)
    # Padding keeps the order of the last token. The keys that are added are hidden by their own mark.
    real = split_chunks(np.ones(T, bool), size)
    columns = split_chunks(k, size), split_chunks(v, size), split_chunks(order, size, "edge"), real

    @partial(jax.checkpoint, prevent_cse=False)
    def queries(here):
        q, rows = here

        @partial(jax.checkpoint, prevent_cse=False)
        def keys(carry, here):
            mixed, rest = carry
            k, v, at, real = here
            pairs = allowed(rows, at) & real[None, :]
            taken, left = _logarithms(scored(q, k, rows, at).astype(dtype), pairs)
            share = jnp.where(pairs, jnp.exp(taken + later_sums(left) + rest[:, None]), 0)
            return (mixed + matmul(share.astype(v.dtype), v), rest + left.sum(axis=1)), None

        empty = jnp.zeros((size, v.shape[1]), dtype), jnp.zeros(size, dtype)
        return jax.lax.scan(keys, varying_like(empty, (q, columns)), columns, reverse=True)[0][0]

    y = jax.lax.map(queries, (split_chunks(q, size), split_chunks(order, size, "edge")))
    return y.reshape(-1, v.shape[1])[:T]


def _logarithms(scores, allowed):
    """Returns log σ(z) and log(1 − σ(z)), which is zero for pairs that are not allowed."""
    scores = jnp.where(allowed, scores, 0)
    return jax.nn.log_sigmoid(scores), jnp.where(allowed, jax.nn.log_sigmoid(-scores), 0)
