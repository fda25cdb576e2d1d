"""A user's mechanism with an extra as wide as the values: linear attention to values with a gate per channel."""

from dataclasses import dataclass

import jax
import jax.numpy as jnp

from attnlab.mechanisms.base import Traits
from attnlab.mechanisms.cost import Cost
from attnlab.mechanisms.recurrent import Recurrent


@dataclass(frozen=True)
class Gated(Recurrent):
    """y_t = Σ_s (q_t·k_s) σ(gate_s) v_s σ(out_t) w: `out` is [S V], `w` is [V]; causally alone `out` reaches y."""

    tokens = {"gate": ("V",), "out": ("V",)}  # noqa: RUF012
    learned = {"w": ("V",)}  # noqa: RUF012
    traits = Traits()

    def initial(self, key, K, V):
        """Ones, and a little more by channel."""
        return {"w": 1 + jnp.arange(V, dtype=jnp.float32) / V}

    def attend_all(self, q, k, v, mask, *, i, j, bias=None, gate, out, w):
        """Every pair that the mask allows."""
        return jnp.where(jnp.asarray(mask(i, j)), q @ k.T, 0) @ (jax.nn.sigmoid(gate) * v) * w[None, :]

    def update(self, memory, q, k, v, block, *, bias=None, gate, out, w):
        """A sum of k vᵀ is remembered."""
        v = jax.nn.sigmoid(gate) * v
        y = q @ memory.astype(q.dtype) + jnp.tril(q @ k.T) @ v
        return y * jax.nn.sigmoid(out) * w[None, :], memory + k.T @ v

    def cost(self, T, S, K, V, block=None):
        """Of the pairs."""
        return Cost(2 * T * S * (K + V), 4 * (T + S) * (K + V), 4 * K * V)
