"""Kimi delta attention: the delta rule with one gate per channel."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

from attnlab.mechanisms.chunked import UnitKeys
from attnlab.ops import gate


@final
@dataclass(frozen=True)
class Kda(UnitKeys):
    """Delta rule whose state decays by one gate per key channel (Kimi delta attention).

    S_t = (I − β_t k_tᵀ k_t) diag(α_t) S_{t-1} + β_t k_tᵀ v_t, y_t = q_t S_t

    β = sigmoid(beta), α = e^(−A softplus(dt + shift))

    The extra input `beta` is one number per token, and `dt` one per token and key channel. A = e^rate is learned, one
    per head, and `shift`, one per key channel. q and k are normalised to x / √(‖x‖² + ε), and q is then divided by √K,
    as in the authors' code (flash-linear-attention). With `scale_queries` False and `epsilon` 0, only the equation
    remains. The state is a matrix [K V]. Rotary positions are not supported: channels that decay at different rates do
    not rotate together.

    Raises:
        ValueError: if `chunk` is below 1, or `epsilon` below 0.

    Source: Kimi Linear, Kimi Team 2025, eq. 1.
    """

    chunk: int = 32
    """Number of tokens per chunk."""

    @property
    def tokens(self):
        """Strength of the write `beta`, before the sigmoid, and decay step per channel `dt`, before the softplus."""
        return {"beta": (), "dt": ("K",)}

    @property
    def learned(self):
        """`rate`: logarithm of A. `shift`: offset of the steps, per channel."""
        return {"rate": (), "shift": ("K",)}

    def initial(self, key, K, V):
        """Returns initial values as in Mamba-2."""
        return gate.initial(key, (K,))

    def update(self, memory, q, k, v, block, *, bias=None, beta, dt, rate, shift):
        """Processes new tokens by chunks."""
        dt, rate, shift = (x.astype(memory.dtype) for x in (dt, rate, shift))
        return self.advance(memory, q, k, v, beta, gate.log_decay(gate.step_size(dt, shift), rate), block)
