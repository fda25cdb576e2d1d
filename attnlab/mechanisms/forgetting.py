"""Forgetting attention: softmax attention with forget gates."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import jax
import jax.numpy as jnp
import numpy as np
from jax.tree_util import Partial

from attnlab.mechanisms.cost import Cost, cached, moved
from attnlab.mechanisms.pairwise import CausalPairwise
from attnlab.ops import blockwise
from attnlab.ops.counts import check_counts, check_positive
from attnlab.ops.later_sums import later_sums, later_sums_flops
from attnlab.ops.learned_score import Scores
from attnlab.ops.precise_sums import PreciseSums, precise_cumsum
from attnlab.ops.precision import accumulation_dtype
from attnlab.ops.score import scaled_dot
from attnlab.ops.softmax import masked_softmax


@final
@dataclass(frozen=True)
class Forgetting(CausalPairwise):
    """Softmax attention whose scores decay with forget gates (the Forgetting Transformer, FoX).

    y_t = Σ_j softmax_j(q_t·k_j/√K + Σ_{j<n≤t} log f_n) v_j, f = sigmoid(forget + shift)

    The extra input `forget` is one number per token, and `shift` is learned, one per head. The gates tell near from
    far, so that no position encoding is needed. With open gates this is softmax attention. The decoding state is a
    cache of keys, values and gates. The norm and the output gate of the paper's "Pro" layer belong to the module.

    Raises:
        ValueError: if `block` is below 1 or `softcap` is not above 0.

    Source: Lin et al. 2025, eq. 4 (arXiv 2503.02130).
    """

    block: int | None = None
    """Number of queries and of keys per block, or None to compute all pairs at once.

    None takes O(T·S) memory. Blocks give the same result with memory linear in T.
    """
    softcap: float | None = None
    """Bound c of q·k/√K, which becomes c·tanh(s/c) before the gates are added, or None for no bound."""

    def __post_init__(self):
        check_counts(block=self.block)
        check_positive(softcap=self.softcap)

    @property
    def tokens(self):
        """`forget`: forget gate of each token, before the shift and the sigmoid."""
        return {"forget": ()}

    @property
    def learned(self):
        """`shift`: offset of the gates."""
        return {"shift": ()}

    def initial(self, key, K, V):
        """Returns a shift of zero, as in the authors' code."""
        return {"shift": jnp.zeros((), jnp.float32)}

    def weights(self, q, k, allowed, *, i, j, bias=None, forget, shift):
        """Returns weights [T S], in at least float32. The gates of the keys that a query sees are summed."""
        scores = Scores(scaled_dot, {}, bias, self.softcap)(q, k, i, j)
        log_gates = self._log_gates(forget, shift, scores.dtype)
        return masked_softmax(scores + later_sums(jnp.where(allowed, log_gates[None, :], 0)), allowed)

    def attend_causal(self, q, k, v, block, *, bias=None, forget, shift):
        """Attends causally with all pairs at once, or by blocks."""
        if self.block is None:
            return super().attend_causal(q, k, v, block, bias=bias, forget=forget, shift=shift)
        log_gates = self._log_gates(forget, shift, accumulation_dtype(q.dtype))
        sums = precise_cumsum(jnp.where(jnp.asarray(block.keep), log_gates, 0))
        order = np.arange(q.shape[0], dtype=np.int32)
        scores = Scores(scaled_dot, {}, Partial(_decayed, bias, sums, jnp.asarray(block.i)), self.softcap)
        mask = blockwise.PositionedMask(block.mask, order, order)
        return blockwise.attend(q, k, v, scores, [mask], i=order, j=order, block=self.block)[0].astype(v.dtype)

    def cost(self, T, S, K, V, block=None):
        """Counts two products of T×S pairs, the sums of gates, and seven operations per pair, or ten with a cap."""
        return Cost(
            flops=T * S * (2 * K + 2 * V + 7 + 3 * (self.softcap is not None)) + later_sums_flops(T, S),
            bytes=moved(T, S, K, V) + 4 * S,
            state_bytes=cached(S, K, V) + 4 * S,
        )

    def _log_gates(self, forget, shift, dtype):
        """Returns the logarithms of the gates [S]."""
        return jax.nn.log_sigmoid(forget.astype(dtype) + shift.astype(dtype))


def _decayed(bias, sums: PreciseSums, positions, q, rows, columns):
    """Returns the sum of log gates after each key up to each query, plus the bias at their positions."""
    decay = jnp.minimum(sums.difference(rows, columns), 0)
    return decay if bias is None else decay + bias(q, positions[rows], positions[columns]).astype(decay.dtype)
