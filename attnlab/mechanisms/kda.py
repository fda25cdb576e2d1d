"""Kimi delta attention: the delta rule with a gate a channel."""

from __future__ import annotations

from dataclasses import dataclass

import jax

from attnlab.mechanisms.chunked import UnitKeys
from attnlab.ops import delta, gate


@dataclass(frozen=True)
class Kda(UnitKeys):
    """S_t = (I − β_t k_tᵀ k_t) diag(α_t) S_{t-1} + β_t k_tᵀ v_t, y_t = q_t S_t (Kimi Linear: Kimi Team 2025, eq. 1).

    β = sigmoid(beta) of a raw number a token, α = e^(−A softplus(step + shift)) of one a key channel; A = e^rate and
    `shift` are learned, one and K a head. q and k are of norm one, x / √(‖x‖² + ε), and q is then divided by √K, as in
    the authors' code (flash-linear-attention); with `scale_queries` False and `epsilon` 0 it is the equation alone. By
    chunks of `chunk` tokens; its state is a [K V] matrix. Does not turn: channels that fade apart do not rotate
    together.

    Raises ValueError for a chunk below 1, and for an epsilon below 0.
    """

    chunk: int = 32

    @property
    def tokens(self):
        """The raw strength of the write, and the raw step of every key channel."""
        return {"beta": (), "step": ("K",)}

    @property
    def learned(self):
        """The logarithm of A, and what is added to raw steps."""
        return {"rate": (), "shift": ("K",)}

    def initial(self, key, K, V):
        """As Mamba-2's."""
        return gate.initial(key, (K,))

    def update(self, memory, q, k, v, block, *, bias=None, beta, step, rate, shift):
        """Tokens after a state, by chunks."""
        q, k, beta, step, rate, shift = (x.astype(memory.dtype) for x in (q, k, beta, step, rate, shift))
        log_gates = gate.log_decay(gate.step(step, shift), rate)
        beta = jax.nn.sigmoid(beta)
        q, k = self.directions(q, k)
        y, memory = delta.causal(memory, q, k, v, log_gates, beta, block, self.chunk)
        return y.astype(v.dtype), memory
