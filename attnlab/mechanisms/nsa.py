"""Native sparse attention: compressed blocks, picked blocks, and a window."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import final

import jax
import jax.numpy as jnp

from attnlab.mechanisms.cost import Cost, cached, moved
from attnlab.mechanisms.pairwise import CausalPairwise
from attnlab.ops.counts import check_counts, check_positive
from attnlab.ops.key_blocks import KeyBlocks
from attnlab.ops.learned_score import Scores
from attnlab.ops.mask import Window
from attnlab.ops.score import scaled_dot, soft_cap
from attnlab.ops.softmax import masked_softmax


@final
@dataclass(frozen=True)
class NativeSparse(CausalPairwise):
    """Sum of attention to compressed blocks, to picked blocks and to a window (native sparse attention, NSA).

    y_t = g₁ softmax(q_t k̄ᵀ/√K) v̄ + g₂ softmax(q_t kᵀ/√K) v + g₃ softmax(q_t kᵀ/√K) v, g = sigmoid(gates)

    The first attends to the means k̄ and v̄ of complete blocks of earlier keys. The second attends to the keys of
    `picks` blocks: the first one, the query's own and the one before, and those with the largest weight in the first
    softmax. The third attends to a window. The extra input `gates` is three numbers per query. The paper compresses
    overlapping blocks by a learned network; the mean of blocks that do not overlap is the simplification of
    flash-linear-attention. The choice has no gradient. All pairs are computed and masked, so time and memory are
    O(T·S). The decoding state is a cache of keys and values.

    Raises:
        ValueError: if `size`, `picks` or `window` is below 1, if `softcap` is not above 0, or if a position is known to
            be as large as the number of keys, rounded up to whole blocks. If positions are not known, the output of
            such a query is NaN.

    Source: Yuan et al. 2025, eq. 5-12 (arXiv 2502.11089).
    """

    size: int = field(default=64, kw_only=True)
    """Number of positions per block."""
    picks: int = field(default=16, kw_only=True)
    """Number of blocks that a query picks."""
    window: int = field(default=512, kw_only=True)
    """Number of keys in the window, the query's own included."""
    softcap: float | None = field(default=None, kw_only=True)
    """Bound c of the scores, or None. Scores become c·tanh(s/c), before bias and mask (Gemma 2: c = 50)."""

    def __post_init__(self):
        check_counts(size=self.size, picks=self.picks, window=self.window)
        check_positive(softcap=self.softcap)

    @property
    def queries(self):
        """`gates`: shares of the compressed blocks, the picked blocks and the window, before the sigmoid."""
        return {"gates": (3,)}

    def weights(self, q, k, allowed, *, i, j, bias=None, gates):
        """Returns weights [T S], in at least float32. The weight of a compressed block is divided among its keys."""
        blocks = KeyBlocks.of(i, j, self.size)
        own, numbers = blocks.own[:, None], blocks.numbers
        means, visible = blocks.mean_scores(q, k, allowed)
        complete = visible & ((numbers + 1) * self.size - 1 <= jnp.asarray(i)[:, None])
        means = means * q.shape[1] ** -0.5
        compressed = masked_softmax(means if self.softcap is None else soft_cap(means, self.softcap), complete)
        always = visible & ((numbers == own) | (numbers == own - 1) | (numbers == 0))
        chosen = blocks.per_key(
            blocks.best(jnp.where(always, jnp.inf, jnp.where(complete, compressed, -1)), self.picks)
        )
        scores = Scores(scaled_dot, {}, bias, self.softcap)(q, k, i, j)
        shares = jax.nn.sigmoid(gates.astype(scores.dtype))
        mixed = (
            jnp.where(allowed, blocks.per_key(compressed) / self.size, 0),
            masked_softmax(scores, allowed & chosen),
            masked_softmax(scores, allowed & Window(self.window, 1)(i, j)),
        )
        weights = sum(shares[:, n : n + 1] * each for n, each in enumerate(mixed))
        return jnp.where(blocks.inside[:, None], weights, jnp.nan)

    def cost(self, T, S, K, V, block=None):
        """Counts two products per pair, the means of the blocks, and three softmaxes."""
        return Cost(
            flops=T * S * (4 * K + 2 * V + 20 + 3 * (self.softcap is not None)) + T * S * 4 * -(-S // self.size),
            bytes=moved(T, S, K, V) + 12 * T,
            state_bytes=cached(S, K, V),
        )
