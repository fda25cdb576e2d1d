"""A user-defined mechanism with an input as wide as the values: linear attention with a gate per value channel."""

from dataclasses import dataclass

import jax
import jax.numpy as jnp

from attnlab.mechanisms.base import Traits
from attnlab.mechanisms.cost import Cost
from attnlab.mechanisms.recurrent import Recurrent


@dataclass(frozen=True)
class Gated(Recurrent):
    """Computes y_t = Σ_s (q_t·k_s) σ(gate_s) v_s σ(out_t) w, with `out` [S V] and `w` [V].

    Only the causal form uses `out`.
    """

    tokens = {"gate": ("V",), "out": ("V",)}  # noqa: RUF012
    learned = {"w": ("V",)}  # noqa: RUF012
    traits = Traits()

    def initial(self, key, K, V):
        """Returns ones that increase slightly from channel to channel."""
        return {"w": 1 + jnp.arange(V, dtype=jnp.float32) / V}

    def attend_all(self, q, k, v, mask, *, i, j, bias=None, gate, out, w):
        """Attends over every pair that the mask allows."""
        return jnp.where(jnp.asarray(mask(i, j)), q @ k.T, 0) @ (jax.nn.sigmoid(gate) * v) * w[None, :]

    def update(self, memory, q, k, v, block, *, bias=None, gate, out, w):
        """Adds k vᵀ to the memory. Returns the outputs and the new memory."""
        v = jax.nn.sigmoid(gate) * v
        y = q @ memory.astype(q.dtype) + jnp.tril(q @ k.T) @ v
        return y * jax.nn.sigmoid(out) * w[None, :], memory + k.T @ v

    def cost(self, T, S, K, V, block=None):
        """Returns the cost of computing all pairs."""
        return Cost(2 * T * S * (K + V), 4 * (T + S) * (K + V), 4 * K * V)
