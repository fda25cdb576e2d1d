"""State space duality: one gate per token."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

from attnlab.mechanisms.base import Traits
from attnlab.mechanisms.chunked import Chunked
from attnlab.ops import decay, gate


@final
@dataclass(frozen=True)
class Ssd(Chunked):
    """Linear attention whose state decays by one gate per token (state space duality, Mamba-2).

    S_t = e^(−A Δ_t) S_{t-1} + Δ_t k_tᵀ v_t, y_t = q_t S_t, Δ = softplus(dt + shift)

    The extra input `dt` is one number per token. A = e^rate and `shift` are learned, one per head. They start as in
    Mamba-2: A uniform in 1 … 16, Δ log-uniform in 0.001 … 0.1. The write is multiplied by the step, as there, and
    queries are not scaled. The state is a matrix [K V]. The skip connection D x and the output gate belong to the
    module.

    Raises:
        ValueError: if `chunk` is below 1.

    Source: Dao and Gu 2024.
    """

    traits = Traits(non_causal=False, rotary=True, position_dependent=True)

    @property
    def tokens(self):
        """`dt`: step size, before shift and softplus."""
        return {"dt": ()}

    @property
    def learned(self):
        """`rate`: logarithm of A. `shift`: offset of the steps."""
        return {"rate": (), "shift": ()}

    def initial(self, key, K, V):
        """Returns initial values as in Mamba-2."""
        return gate.initial(key)

    def update(self, memory, q, k, v, block, *, bias=None, dt, rate, shift):
        """Processes new tokens by chunks."""
        dt, rate, shift = (x.astype(memory.dtype) for x in (dt, rate, shift))
        dt = gate.step_size(dt[:, None], shift[None])
        k = k.astype(memory.dtype) * dt
        y, memory = decay.causal(memory, q, k, v, gate.log_decay(dt, rate), block, self.chunk)
        return y.astype(v.dtype), memory
