"""Stick-breaking attention."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import jax.numpy as jnp

from attnlab.mechanisms.cost import Cost, cached, moved
from attnlab.mechanisms.pairwise import CausalPairwise
from attnlab.ops import stick_breaking
from attnlab.ops.counts import check_counts
from attnlab.ops.later_sums import later_sums_flops
from attnlab.ops.score import scaled_dot


@final
@dataclass(frozen=True)
class StickBreaking(CausalPairwise):
    """Attention in which each key takes a share of what the keys after it have left (stick-breaking).

    y_t = Σ_{j<t} σ(z_tj) Π_{j<n<t} (1 − σ(z_tn)) v_j, z = q·k/√K + bias

    The weights depend on the order of the keys, so that no position encoding is needed. They sum to at most one, and a
    first token returns zero. The decoding state is a cache of keys and values. Time is O(T·S).

    Raises:
        ValueError: if `block` is below 1.

    Source: Tan et al. 2024, eq. 3-4 (arXiv 2410.17980).
    """

    attend_current: bool = False
    """Whether a token also attends to itself, as the first key that takes a share."""
    block: int | None = None
    """Number of queries and of keys per block, or None to compute all pairs at once.

    Blocks give the same result with memory linear in T.
    """

    def __post_init__(self):
        check_counts(block=self.block)

    def weights(self, q, k, allowed, *, i, j, bias=None):
        """Returns weights [T S], in at least float32. The last key that a query sees is its own."""
        if not self.attend_current:
            allowed = allowed & (jnp.arange(k.shape[0], dtype=jnp.int32)[None, :] != _last(allowed)[:, None])
        scores = scaled_dot(q, k)
        return stick_breaking.weights(scores if bias is None else scores + bias(q, i, j).astype(scores.dtype), allowed)

    def attend_causal(self, q, k, v, block, *, bias=None):
        """Attends causally with all pairs at once, or by blocks."""
        if self.block is None:
            return super().attend_causal(q, k, v, block, bias=bias)
        at = jnp.asarray(block.positions)

        def scored(q, k, rows, columns):
            scores = scaled_dot(q, k)
            return scores if bias is None else scores + bias(q, at[rows], at[columns]).astype(scores.dtype)

        def allowed(rows, columns):
            pairs = block.mask(rows, columns)
            return pairs if self.attend_current else pairs & (rows[:, None] != columns[None, :])

        return stick_breaking.by_blocks(q, k, v, scored, allowed, self.block).astype(v.dtype)

    def cost(self, T, S, K, V, block=None):
        """Counts two products of T×S pairs, the sums, and ten operations per pair for the logarithms."""
        return Cost(
            flops=T * S * (2 * K + 2 * V + 10) + later_sums_flops(T, S),
            bytes=moved(T, S, K, V),
            state_bytes=cached(S, K, V),
        )


def _last(allowed):
    """Returns the index of the last key that each query sees, or −1."""
    return jnp.max(jnp.where(allowed, jnp.arange(allowed.shape[1], dtype=jnp.int32)[None, :], -1), axis=1, initial=-1)
