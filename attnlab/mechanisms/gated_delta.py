"""The delta rule with one gate a token."""

from __future__ import annotations

from dataclasses import dataclass

import jax

from attnlab.mechanisms.chunked import Chunked
from attnlab.ops import delta, gate
from attnlab.ops.layer import unit


@dataclass(frozen=True)
class GatedDelta(Chunked):
    """S_t = (I − β_t k_tᵀ k_t) α_t S_{t-1} + β_t k_tᵀ v_t, y_t = q_t S_t (Yang, Kautz and Hatamizadeh 2024, eq. 10).

    β = sigmoid(beta) and α = e^(−A softplus(step + shift)) of raw numbers a token, A = e^rate and `shift` learned, one
    a head, as in Mamba-2. q and k are of norm one. By chunks of `chunk` tokens; its state is a [K V] matrix.

    Raises ValueError for a chunk below 1.
    """

    turns = True
    rule = delta

    @property
    def tokens(self):
        """The raw strength of the write, and the raw step."""
        return {"beta": (), "step": ()}

    @property
    def learned(self):
        """The logarithm of A, and what is added to raw steps."""
        return {"rate": (), "shift": ()}

    def initial(self, key, K, V):
        """As Mamba-2's."""
        return gate.initial(key)

    def absorb(self, memory, q, k, v, block, *, bias=None, beta, step, rate, shift):
        """Tokens after a state, by chunks."""
        q, k, beta, step, rate, shift = (x.astype(memory.dtype) for x in (q, k, beta, step, rate, shift))
        log_gates = gate.log_decay(gate.step(step[:, None], shift[None]), rate)
        beta = jax.nn.sigmoid(beta)
        y, memory = delta.causal(memory, unit(q), unit(k), v, log_gates, beta, block, self.chunk)
        return y.astype(v.dtype), memory
