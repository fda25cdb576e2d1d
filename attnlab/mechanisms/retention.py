"""Retention: a fixed decay per head."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import jax
import jax.numpy as jnp
import numpy as np

from attnlab.mechanisms.base import Traits
from attnlab.mechanisms.chunked import Chunked, divide_by_sqrt_width
from attnlab.mechanisms.cost import Cost
from attnlab.ops import decay


@final
@dataclass(frozen=True)
class Retention(Chunked):
    """Linear attention with a fixed decay per head (RetNet).

    y_t = Σ_{s≤t} γ^(t−s) (q_t·k_s / √K) v_s, γ = 1 − 2^(−5−h) for head h = 0, 1, …

    `rate` is −log γ. The state is a matrix [K V].

    The group norm that follows in RetNet belongs to the module. It cancels two further normalisations of the authors'
    code, which keep numbers small. `normalise_decay` does the first. The second, dividing each row of scores by the
    larger of 1 and the absolute value of its sum, is left out.

    Raises:
        ValueError: if `chunk` is below 1.

    Source: Sun et al. 2023, eq. 5 and 8.
    """

    normalise_decay: bool = False
    """Whether to divide each row of the decay mask by the square root of its sum: y_t / √(Σ_{s≤t} γ^(t−s)).

    This adds one number to the state.
    """
    traits = Traits(non_causal=False, rotary=True, position_dependent=True)

    def heads(self, H):
        """Returns −log γ of every head."""
        # In float64, because 1 − 2^−30 rounds to 1 in float32.
        return {"rate": jnp.asarray(-np.log1p(-(2.0 ** (-5.0 - np.arange(H)))), jnp.result_type(float))}

    def init_memory(self, length, K, V, dtype):
        """Returns an empty sum [K V] in at least float32, and that of the decays [1 1] if `normalise_decay`."""
        state = super().init_memory(length, K, V, dtype)
        return (state, jnp.zeros((1, 1), state.dtype)) if self.normalise_decay else state

    def update(self, memory, q, k, v, block, *, bias=None, rate):
        """Processes new tokens by chunks."""
        state, decays = memory if self.normalise_decay else (memory, None)
        fixed = jnp.full((q.shape[0], 1), -rate.astype(state.dtype))
        y, state = decay.causal(state, divide_by_sqrt_width(q.astype(state.dtype)), k, v, fixed, block, self.chunk)
        if decays is None:
            return y.astype(v.dtype), state
        ones = jnp.asarray(block.keep)[:, None].astype(state.dtype)
        total, decays = decay.causal(decays, ones, ones, ones, fixed, block, self.chunk)
        return (y * jax.lax.rsqrt(jnp.maximum(total, 1))).astype(v.dtype), (state, decays)

    def cost(self, T, S, K, V, block=None):
        """Counts a decay with one gate per token, and the sums of the decays if `normalise_decay`."""
        cost = super().cost(T, S, K, V, block)
        if not self.normalise_decay:
            return cost
        more = decay.flops(T, 1, 1, self.at_once(block)) + 2 * T * V
        return Cost(cost.flops + more, cost.bytes, cost.state_bytes + 4)
