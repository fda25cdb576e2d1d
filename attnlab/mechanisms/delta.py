"""The delta rule."""

from __future__ import annotations

from dataclasses import dataclass

import jax
import jax.numpy as jnp

from attnlab.mechanisms.chunked import UnitKeys
from attnlab.ops import delta


@dataclass(frozen=True)
class Delta(UnitKeys):
    """S_t = (I − β_t k_tᵀ k_t) S_{t-1} + β_t k_tᵀ v_t, y_t = q_t S_t, β = sigmoid(beta) (Yang et al. 2024, eq. 3).

    q and k are of norm one, x / √(‖x‖² + ε), as in the paper (whose convolution and SiLU before them are
    `ShortConvolution`), so that β = 1 replaces what the key held, and q is then divided by √K, as in the authors' code
    (flash-linear-attention). With `scale_queries` False and `epsilon` 0 it is the equation alone. `beta` is a raw
    number a token. By chunks of `chunk` tokens; its state is a [K V] matrix.

    Raises ValueError for a chunk below 1, and for an epsilon below 0.
    """

    turns = True

    @property
    def tokens(self):
        """The raw strength of the write."""
        return {"beta": ()}

    def update(self, memory, q, k, v, block, *, bias=None, beta):
        """Tokens after a state, by chunks."""
        q, k, beta = (x.astype(memory.dtype) for x in (q, k, beta))
        open_ = jnp.zeros((q.shape[0], 1), memory.dtype)
        q, k = self.directions(q, k)
        y, memory = delta.causal(memory, q, k, v, open_, jax.nn.sigmoid(beta), block, self.chunk)
        return y.astype(v.dtype), memory
