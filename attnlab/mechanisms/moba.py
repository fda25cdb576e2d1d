"""Mixture of block attention: each query picks blocks of keys."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import final

import jax.numpy as jnp

from attnlab.mechanisms.cost import Cost, cached, moved
from attnlab.mechanisms.pairwise import CausalPairwise
from attnlab.ops.counts import check_counts, check_positive
from attnlab.ops.key_blocks import KeyBlocks
from attnlab.ops.learned_score import Scores
from attnlab.ops.score import scaled_dot
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
        ValueError: if `size` or `picks` is below 1, if `softcap` is not above 0, or if a position is known to be as
            large as the number of keys, rounded up to whole blocks. If positions are not known, the output of
            such a query is NaN.

    Source: Lu et al. 2025, eq. 5-6 (arXiv 2502.13189).
    """

    size: int = field(default=64, kw_only=True)
    """Number of positions per block."""
    picks: int = field(default=3, kw_only=True)
    """Number of blocks that a query attends to, its own included."""
    softcap: float | None = field(default=None, kw_only=True)
    """Bound c of the scores, or None. Scores become c·tanh(s/c), before bias and mask (Gemma 2: c = 50)."""

    def __post_init__(self):
        check_counts(size=self.size, picks=self.picks)
        check_positive(softcap=self.softcap)

    def weights(self, q, k, allowed, *, i, j, bias=None):
        """Returns weights [T S], in at least float32."""
        blocks = KeyBlocks.of(i, j, self.size)
        means, visible = blocks.mean_scores(q, k, allowed)
        means = jnp.where(blocks.numbers == blocks.own[:, None], jnp.inf, jnp.where(visible, means, -jnp.inf))
        chosen = blocks.per_key(blocks.best(means, self.picks))
        weights = masked_softmax(Scores(scaled_dot, {}, bias, self.softcap)(q, k, i, j), allowed & chosen)
        return jnp.where(blocks.inside[:, None], weights, jnp.nan)

    def cost(self, T, S, K, V, block=None):
        """Counts two products per pair, five operations per pair for the softmax, and the means of the blocks."""
        return Cost(
            flops=T * S * (2 * K + 2 * V + 6 + 3 * (self.softcap is not None))
            + T * S * (2 * K + 2 * -(-S // self.size)),
            bytes=moved(T, S, K, V),
            state_bytes=cached(S, K, V),
        )
