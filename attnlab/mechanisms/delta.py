"""The delta rule."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import jax.numpy as jnp

from attnlab.mechanisms.base import Traits
from attnlab.mechanisms.chunked import UnitKeys


@final
@dataclass(frozen=True)
class Delta(UnitKeys):
    """Delta rule: a write first erases what the state holds for the key (DeltaNet).

    S_t = (I − β_t k_tᵀ k_t) S_{t-1} + β_t k_tᵀ v_t, y_t = q_t S_t, β = sigmoid(beta)

    The extra input `beta` is one number per token. q and k are normalised to x / √(‖x‖² + ε), as in the paper, so that
    β = 1 replaces the value of the key. The paper's convolution and SiLU before it are `ShortConvolution`. q is then
    divided by √K, as in the authors' code (flash-linear-attention). With `scale_queries` False and `epsilon` 0, only
    the equation remains. The state is a matrix [K V].

    Raises:
        ValueError: if `chunk` is below 1, or `epsilon` below 0.

    Source: Yang et al. 2024, eq. 3.
    """

    traits = Traits(non_causal=False, rotary=True, position_dependent=True)

    @property
    def tokens(self):
        """`beta`: strength of the write, before the sigmoid."""
        return {"beta": ()}

    def update(self, memory, q, k, v, block, *, bias=None, beta):
        """Processes new tokens by chunks."""
        return self.advance(memory, q, k, v, beta, jnp.zeros((q.shape[0], 1), memory.dtype), block)
