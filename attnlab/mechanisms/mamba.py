"""Mamba: a selective state space model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import jax.numpy as jnp

from attnlab.mechanisms.base import Traits
from attnlab.mechanisms.chunked import Chunked
from attnlab.mechanisms.cost import Cost
from attnlab.ops import gate, selective_scan


@final
@dataclass(frozen=True)
class Mamba(Chunked):
    """Linear attention whose state decays at a rate of its own in every entry (the selective scan of Mamba).

    S_t = e^(−A ⊙ Δ_t) ⊙ S_{t-1} + k_tᵀ (Δ_t ⊙ v_t), y_t = q_t S_t, Δ = softplus(dt + shift)

    In the paper's letters, q is C, k is B and v is x. The extra input `dt` is one number per token and value channel.
    A = e^rate is learned, one per key and value channel, and `shift`, one per value channel. They start as in the
    authors' code: A = 1 … K in the key channels, Δ log-uniform in 0.001 … 0.1. Queries are not scaled. The state is a
    matrix [K V]. The skip connection D x and the output gate belong to the module. Rotary positions are not supported:
    channels that decay at different rates do not rotate together.

    The gates do not factor over keys and values, so no matrix product computes a chunk. Each token takes O(K·V).

    Raises:
        ValueError: if `chunk` is below 1.

    Source: Gu and Dao 2023, algorithm 2 (arXiv 2312.00752).
    """

    chunk: int = 32
    """Number of tokens per chunk. A gradient keeps one state per chunk, and recomputes the others."""
    traits = Traits(non_causal=False, position_dependent=True, undecayed=("rate",))

    @property
    def tokens(self):
        """`dt`: step size per value channel, before shift and softplus."""
        return {"dt": ("V",)}

    @property
    def learned(self):
        """`rate`: logarithm of A. `shift`: offset of the steps."""
        return {"rate": ("K", "V"), "shift": ("V",)}

    def initial(self, key, K, V):
        """Returns initial values as in the authors' code."""
        rate = jnp.log(jnp.arange(1, K + 1, dtype=jnp.float32))
        return {"rate": jnp.tile(rate[:, None], (1, V)), "shift": gate.initial(key, (V,))["shift"]}

    def update(self, memory, q, k, v, block, *, bias=None, dt, rate, shift):
        """Processes new tokens by chunks."""
        dt, rate, shift = (x.astype(memory.dtype) for x in (dt, rate, shift))
        dt = gate.step_size(dt, shift)
        values = dt * v.astype(memory.dtype)
        y, memory = selective_scan.causal(memory, q, k, values, dt, jnp.exp(rate), block, self.chunk)
        return y.astype(v.dtype), memory

    def cost(self, T, S, K, V, block=None):
        """Counts the steps of all tokens, one after another."""
        cost = super().cost(T, S, K, V, block)
        return Cost(selective_scan.flops(T, K, V), cost.bytes, cost.state_bytes)
