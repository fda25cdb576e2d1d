"""Retention: a decay fixed by head."""

from __future__ import annotations

from dataclasses import dataclass

import jax.numpy as jnp
import numpy as np

from attnlab.mechanisms.chunked import Chunked
from attnlab.ops import decay


@dataclass(frozen=True)
class Retention(Chunked):
    """y_t = Σ_{s≤t} γ^(t−s) (q_t·k_s / √K) v_s, γ = 1 − 2^(−5−h) for head h = 0, 1, … (Sun et al. 2023, eq. 5 and 8).

    `rate` is −log γ. By chunks of `chunk` tokens; its state is a [K V] matrix. The group norm that follows in RetNet,
    and makes the paper's two other normalisations vanish, is the module's business.

    Raises ValueError for a chunk below 1.
    """

    turns = True

    def heads(self, H):
        """−log γ of every head."""
        # In double precision, where 1 − 2^−30 is not yet 1.
        return {"rate": jnp.asarray(-np.log1p(-(2.0 ** (-5.0 - np.arange(H)))), jnp.result_type(float))}

    def absorb(self, memory, q, k, v, block, *, bias=None, rate):
        """Tokens after a state, by chunks."""
        fixed = jnp.full((q.shape[0], 1), -rate.astype(memory.dtype))
        q = q.astype(memory.dtype) * q.shape[1] ** -0.5
        y, memory = decay.causal(memory, q, k, v, fixed, block, self.chunk)
        return y.astype(v.dtype), memory
