"""The delta rule with one gate a token."""

from __future__ import annotations

from dataclasses import dataclass

import jax

from attnlab.mechanisms.chunked import UnitKeys
from attnlab.ops import delta, gate


@dataclass(frozen=True)
class GatedDelta(UnitKeys):
    """S_t = (I − β_t k_tᵀ k_t) α_t S_{t-1} + β_t k_tᵀ v_t, y_t = q_t S_t (Yang, Kautz and Hatamizadeh 2024, eq. 10).

    β = sigmoid(beta) and α = e^(−A softplus(step + shift)) of raw numbers a token, A = e^rate and `shift` learned, one
    a head, as in Mamba-2, but that A starts uniform in 0 … 16, as in the authors' code. q and k are of norm one,
    x / √(‖x‖² + ε), and q is then divided by √K, as there; with `scale_queries` False and `epsilon` 0 it is the
    equation alone. By chunks of `chunk` tokens; its state is a [K V] matrix.

    Raises ValueError for a chunk below 1, and for an epsilon below 0.
    """

    turns = True

    @property
    def tokens(self):
        """The raw strength of the write, and the raw step."""
        return {"beta": (), "step": ()}

    @property
    def learned(self):
        """The logarithm of A, and what is added to raw steps."""
        return {"rate": (), "shift": ()}

    def initial(self, key, K, V):
        """As Mamba-2's, but that rates start in 0 … 16."""
        return gate.initial(key, slowest=0.0)

    def update(self, memory, q, k, v, block, *, bias=None, beta, step, rate, shift):
        """Tokens after a state, by chunks."""
        q, k, beta, step, rate, shift = (x.astype(memory.dtype) for x in (q, k, beta, step, rate, shift))
        log_gates = gate.log_decay(gate.step(step[:, None], shift[None]), rate)
        beta = jax.nn.sigmoid(beta)
        q, k = self.directions(q, k)
        y, memory = delta.causal(memory, q, k, v, log_gates, beta, block, self.chunk)
        return y.astype(v.dtype), memory
