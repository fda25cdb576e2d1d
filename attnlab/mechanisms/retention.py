"""Retention: a decay fixed by head."""

from __future__ import annotations

from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np

from attnlab.mechanisms.chunked import Chunked, divide_by_sqrt_width
from attnlab.mechanisms.cost import Cost
from attnlab.ops import decay


@dataclass(frozen=True)
class Retention(Chunked):
    """y_t = Σ_{s≤t} γ^(t−s) (q_t·k_s / √K) v_s, γ = 1 − 2^(−5−h) for head h = 0, 1, … (Sun et al. 2023, eq. 5 and 8).

    `rate` is −log γ. By chunks of `chunk` tokens; its state is a [K V] matrix.

    The group norm that follows in RetNet is the module's business. Under it two more normalisations of the authors'
    code vanish, which keep numbers small. `normalise_decay` does the first: rows of the decay mask D over the square
    root of their sum, y_t / √(Σ_{s≤t} γ^(t−s)), at the cost of one more number of state. The second, of each row of
    scores by the larger of 1 and the absolute value of its sum, is left out.

    Raises ValueError for a chunk below 1.
    """

    normalise_decay: bool = False
    turns = True

    def heads(self, H):
        """−log γ of every head."""
        # In double precision, where 1 − 2^−30 is not yet 1.
        return {"rate": jnp.asarray(-np.log1p(-(2.0 ** (-5.0 - np.arange(H)))), jnp.result_type(float))}

    def init_memory(self, length, K, V, dtype):
        """The empty sum [K V], and where `normalise_decay` that of the decays [1 1], in float32 at least."""
        state = super().init_memory(length, K, V, dtype)
        return (state, jnp.zeros((1, 1), state.dtype)) if self.normalise_decay else state

    def update(self, memory, q, k, v, block, *, bias=None, rate):
        """Tokens after a state, by chunks."""
        state, decays = memory if self.normalise_decay else (memory, None)
        fixed = jnp.full((q.shape[0], 1), -rate.astype(state.dtype))
        y, state = decay.causal(state, divide_by_sqrt_width(q.astype(state.dtype)), k, v, fixed, block, self.chunk)
        if decays is None:
            return y.astype(v.dtype), state
        ones = jnp.asarray(block.keep)[:, None].astype(state.dtype)
        total, decays = decay.causal(decays, ones, ones, ones, fixed, block, self.chunk)
        return (y * jax.lax.rsqrt(jnp.maximum(total, 1))).astype(v.dtype), (state, decays)

    def cost(self, T, S, K, V, block=None):
        """As a decay of one gate a token, and where `normalise_decay` the sums of the decays."""
        cost = super().cost(T, S, K, V, block)
        if not self.normalise_decay:
            return cost
        more = decay.flops(T, 1, 1, self.at_once(block)) + 2 * T * V
        return Cost(cost.flops + more, cost.bytes, cost.state_bytes + 4)
