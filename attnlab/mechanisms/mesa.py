"""MesaNet: attention that solves a regression at every token."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import jax
import jax.numpy as jnp

from attnlab.mechanisms.base import Traits
from attnlab.mechanisms.chunked import Chunked
from attnlab.mechanisms.cost import Cost
from attnlab.ops import mesa
from attnlab.ops.layer import l2_normalize
from attnlab.ops.precision import accumulation_dtype


@final
@dataclass(frozen=True)
class Mesa(Chunked):
    """Reads the values that ridge regression of all past values on their keys predicts for the query (MesaNet).

    y_t = q_t (H_t + Λ)⁻¹ G_t, H_t = a_t H_{t-1} + β_t k_tᵀ k_t, G_t = a_t G_{t-1} + β_t k_tᵀ v_t

    a = sigmoid(forget), β = sigmoid(beta), Λ = diag(λ), λ = floor + softplus(ridge)

    The extra inputs `forget` and `beta` are one number per token each, and `ridge` is learned, one per key channel. q
    and k are normalised to x / √(‖x‖² + ε). The equations are solved exactly, by the inverse matrix, where the
    authors' code takes up to 30 steps of conjugate gradients. Each token takes O(K³). The state is a matrix [K K+V].

    Raises:
        ValueError: if `chunk` is below 1, or `floor` is not positive.

    Source: von Oswald et al. 2025, eq. 6-8 (arXiv 2506.05233).
    """

    floor: float = 0.25
    """Least value of λ, as in the authors' code."""
    epsilon: float = 1e-6
    """ε in the normalisation x / √(‖x‖² + ε)."""
    chunk: int = 16
    """Number of tokens whose matrices are held at once."""
    traits = Traits(non_causal=False, rotary=True, position_dependent=True)

    def __post_init__(self):
        super().__post_init__()
        if not self.floor > 0:
            raise ValueError(f"floor={self.floor} must be positive")

    @property
    def tokens(self):
        """`forget`: gate of the state, before the sigmoid. `beta`: strength of the write, likewise."""
        return {"forget": (), "beta": ()}

    @property
    def learned(self):
        """`ridge`: λ of each key channel, before softplus and floor."""
        return {"ridge": ("K",)}

    def initial(self, key, K, V):
        """Returns values for which λ is 1, as in the authors' code, or twice the floor if that is larger."""
        above = max(1 - self.floor, self.floor)
        return {"ridge": jnp.full(K, jnp.log(jnp.expm1(above)), jnp.float32)}

    def init_memory(self, length, K, V, dtype):
        """Returns empty sums [K K+V] in at least float32."""
        return jnp.zeros((K, K + V), accumulation_dtype(dtype))

    def update(self, memory, q, k, v, block, *, bias=None, forget, beta, ridge):
        """Processes new tokens by chunks."""
        q, k, forget, beta, ridge = (x.astype(memory.dtype) for x in (q, k, forget, beta, ridge))
        q, k = l2_normalize(q, self.epsilon), l2_normalize(k, self.epsilon)
        log_gates, beta = jax.nn.log_sigmoid(forget)[:, None], jax.nn.sigmoid(beta)[:, None]
        ridge = self.floor + jax.nn.softplus(ridge)
        y, memory = mesa.causal(memory, q, k, v, log_gates, beta, ridge, block, self.chunk)
        return y.astype(v.dtype), memory

    def cost(self, T, S, K, V, block=None):
        """Counts the sums at every token, and the solves."""
        cost = super().cost(T, S, K, V, block)
        return Cost(mesa.flops(T, K, V, self.at_once(block)), cost.bytes, 4 * K * (K + V))
