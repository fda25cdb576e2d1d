"""Gated DeltaNet-2: the delta rule with gates of their own for erasing and writing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import jax

from attnlab.mechanisms.chunked import UnitKeys
from attnlab.ops import delta, gate


@final
@dataclass(frozen=True)
class GatedDelta2(UnitKeys):
    """Delta rule that erases and writes with one gate per channel each (Gated DeltaNet-2).

    S_t = (I − k_tᵀ (b_t ⊙ k_t)) diag(α_t) S_{t-1} + k_tᵀ (w_t ⊙ v_t), y_t = q_t S_t

    b = sigmoid(erase), w = sigmoid(write), α = e^(−A softplus(dt + shift))

    The extra inputs `erase` and `dt` are one number per token and key channel, and `write` is one per token and value
    channel. A = e^rate is learned, one per head, and `shift`, one per key channel, as in Kimi delta attention. With
    b = w = β the equation is that of Kimi delta attention. q and k are normalised to x / √(‖x‖² + ε), and q is then
    divided by √K. The state is a matrix [K V]. Rotary positions are not supported: channels that decay at different
    rates do not rotate together.

    Raises:
        ValueError: if `chunk` is below 1, or `epsilon` below 0.

    Source: Gated DeltaNet-2 2026, eq. 10 (arXiv 2605.22791).
    """

    chunk: int = 32
    """Number of tokens per chunk."""

    @property
    def tokens(self):
        """`erase`: erase gate per key channel, before the sigmoid. `write`: write gate per value channel, likewise.

        `dt`: decay step per key channel, before the softplus.
        """
        return {"erase": ("K",), "write": ("V",), "dt": ("K",)}

    @property
    def learned(self):
        """`rate`: logarithm of A. `shift`: offset of the steps, per channel."""
        return {"rate": (), "shift": ("K",)}

    def initial(self, key, K, V):
        """Returns initial values as in Mamba-2."""
        return gate.initial(key, (K,))

    def update(self, memory, q, k, v, block, *, bias=None, erase, write, dt, rate, shift):
        """Processes new tokens by chunks."""
        cast = lambda x: x.astype(memory.dtype)
        q, k = self.directions(cast(q), cast(k))
        erased, written = self.strength(cast(erase)) * k, jax.nn.sigmoid(cast(write)) * cast(v)
        log_gates = gate.log_decay(gate.step_size(cast(dt), cast(shift)), cast(rate))
        y, memory = delta.causal(memory, q, k, written, erased, log_gates, block, self.chunk)
        return y.astype(v.dtype), memory
