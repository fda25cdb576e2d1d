"""Mixture of block attention: each query picks blocks of keys."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import final

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jaxtyping import Array, Bool, Float

from attnlab.mechanisms.cost import Cost, cached, moved
from attnlab.mechanisms.pairwise import CausalPairwise
from attnlab.ops.counts import check_counts
from attnlab.ops.precision import accumulation_dtype, matmul
from attnlab.ops.score import Scores, scaled_dot
from attnlab.ops.softmax import masked_softmax


@final
@dataclass(frozen=True)
class BlockMixture(CausalPairwise):
    """Softmax attention over the own block and the blocks of earlier keys that a query picks (MoBA).

    y_t = softmax(q_t kᵀ/√K) v over the keys of the query's own block and of the `picks` − 1 earlier blocks with the
    largest q_t·mean(k in the block)

    With as many picks as blocks this is softmax attention. The choice has no gradient. All pairs are computed and
    masked, so time and memory are O(T·S). The decoding state is a cache of keys and values.

    Raises:
        ValueError: if `size` or `picks` is below 1, or if a position is known to be as large as the number of keys,
            rounded up to whole blocks. If positions are not known, the output of such a query is NaN.

    Source: Lu et al. 2025, eq. 5-6 (arXiv 2502.13189).
    """

    size: int = field(default=64, kw_only=True)
    """Number of positions per block."""
    picks: int = field(default=3, kw_only=True)
    """Number of blocks that a query attends to, its own included."""

    def __post_init__(self):
        check_counts(size=self.size, picks=self.picks)

    def weights(self, q, k, allowed, *, i, j, bias=None):
        """Returns weights [T S], in at least float32."""
        chosen, inside = picked_blocks(q, k, allowed, i, j, self.size, self.picks)
        weights = masked_softmax(Scores(scaled_dot, {}, bias)(q, k, i, j), allowed & chosen)
        return jnp.where(inside[:, None], weights, jnp.nan)

    def cost(self, T, S, K, V, block=None):
        """Counts two products per pair, five operations per pair for the softmax, and the means of the blocks."""
        return Cost(
            flops=T * S * (2 * K + 2 * V + 6) + T * S * (2 * K + 2 * -(-S // self.size)),
            bytes=moved(T, S, K, V),
            state_bytes=cached(S, K, V),
        )


def picked_blocks(
    q: Float[Array, "T K"],
    k: Float[Array, "S K"],
    allowed: Bool[Array, "T S"],
    i,
    j,
    size: int,
    picks: int,
) -> tuple[Bool[Array, "T S"], Bool[Array, " T"]]:
    """Returns which keys are in blocks that each query picks.

    A query picks its own block, and the blocks with the largest product with the mean of the keys that it sees there.

    Args:
        q: queries [T K].
        k: keys [S K].
        allowed: keys that each query sees [T S].
        i: positions of the queries [T].
        j: positions of the keys [S].
        size: positions per block.
        picks: number of blocks that each query picks.

    Returns:
        Whether each key is in a picked block [T S], and whether the position of each query has a block [T].

    Raises:
        ValueError: if a position is known to have no block.
    """
    count = max(1, -(-k.shape[0] // size))
    if not isinstance(i, Tracer) and len(i) and (last := int(np.max(np.asarray(i)))) >= count * size:
        raise ValueError(f"{k.shape[0]} keys have positions 0 … {count * size - 1} in blocks of {size}, got {last}")
    own, block = jnp.asarray(i) // size, jnp.asarray(j) // size
    member = (block[:, None] == jnp.arange(count, dtype=block.dtype)[None, :]).astype(accumulation_dtype(q.dtype))
    products = jax.lax.stop_gradient(jnp.where(allowed, matmul(q, k.T), 0))
    sizes = matmul(allowed.astype(member.dtype), member)
    means = jnp.where(sizes > 0, matmul(products, member) / jnp.maximum(sizes, 1), -jnp.inf)
    mine = jnp.arange(count, dtype=own.dtype)[None, :] == own[:, None]
    best = jax.lax.top_k(jnp.where(mine, jnp.inf, means), min(picks, count))[1]
    chosen = jnp.any(best[:, :, None] == jnp.arange(count, dtype=best.dtype)[None, None, :], axis=1)
    return jnp.take_along_axis(chosen, jnp.clip(block, 0, count - 1)[None, :], axis=1), own < count
