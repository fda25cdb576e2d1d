"""State space duality: one gate a token."""

from __future__ import annotations

from dataclasses import dataclass

from attnlab.mechanisms.chunked import Chunked
from attnlab.ops import decay, gate


@dataclass(frozen=True)
class Ssd(Chunked):
    """S_t = e^(−A Δ_t) S_{t-1} + Δ_t k_tᵀ v_t, y_t = q_t S_t, Δ = softplus(step + shift) (Mamba-2: Dao and Gu 2024).

    `step` is a raw number a token; A = e^rate and `shift` are learned, one a head, and start as Mamba-2's do: A uniform
    in 1 … 16, Δ log-uniform in 0.001 … 0.1. The write is multiplied by the step, as there, and queries are not scaled.
    By chunks of `chunk` tokens; its state is a [K V] matrix. The skip D x and the output gate are the module's
    business.

    Raises ValueError for a chunk below 1.
    """

    turns = True

    @property
    def tokens(self):
        """The raw step."""
        return {"step": ()}

    @property
    def learned(self):
        """The logarithm of A, and what is added to raw steps."""
        return {"rate": (), "shift": ()}

    def initial(self, key, K, V):
        """As Mamba-2's."""
        return gate.initial(key)

    def update(self, memory, q, k, v, block, *, bias=None, step, rate, shift):
        """Tokens after a state, by chunks."""
        step, rate, shift = (x.astype(memory.dtype) for x in (step, rate, shift))
        step = gate.step(step[:, None], shift[None])
        k = k.astype(memory.dtype) * step
        y, memory = decay.causal(memory, q, k, v, gate.log_decay(step, rate), block, self.chunk)
        return y.astype(v.dtype), memory
