"""The delta rule with one gate per token."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

from attnlab.mechanisms.base import Traits
from attnlab.mechanisms.chunked import UnitKeys
from attnlab.ops import gate


@final
@dataclass(frozen=True)
class GatedDelta(UnitKeys):
    """Delta rule whose state decays by one gate per token (gated DeltaNet).

    S_t = (I − β_t k_tᵀ k_t) α_t S_{t-1} + β_t k_tᵀ v_t, y_t = q_t S_t

    β = sigmoid(beta), α = e^(−A softplus(dt + shift))

    The extra inputs `beta` and `dt` are one number per token each. A = e^rate and `shift` are learned, one per head,
    as in Mamba-2. A starts uniform in 0 … 16, as in the authors' code. q and k are normalised to x / √(‖x‖² + ε), and q
    is then divided by √K, as there. With `scale_queries` False and `epsilon` 0, only the equation remains. The state is
    a matrix [K V].

    Raises:
        ValueError: if `chunk` is below 1, or `epsilon` below 0.

    Source: Yang, Kautz and Hatamizadeh 2024, eq. 10.
    """

    traits = Traits(non_causal=False, rotary=True, position_dependent=True)

    @property
    def tokens(self):
        """Strength of the write `beta`, before the sigmoid, and decay step `dt`, before the softplus."""
        return {"beta": (), "dt": ()}

    @property
    def learned(self):
        """`rate`: logarithm of A. `shift`: offset of the steps."""
        return {"rate": (), "shift": ()}

    def initial(self, key, K, V):
        """Returns initial values as in Mamba-2, except that A is uniform in 0 … 16."""
        return gate.initial(key, slowest=0.0)

    def update(self, memory, q, k, v, block, *, bias=None, beta, dt, rate, shift):
        """Processes new tokens by chunks."""
        dt, rate, shift = (x.astype(memory.dtype) for x in (dt, rate, shift))
        log_gates = gate.log_decay(gate.step_size(dt[:, None], shift[None]), rate)
        return self.advance(memory, q, k, v, beta, log_gates, block)
