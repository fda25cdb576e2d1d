"""RWKV-7: a delta rule that reads and writes with different strengths per channel."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import final

import jax
import jax.numpy as jnp

from attnlab.mechanisms.chunked import Chunked
from attnlab.mechanisms.cost import Cost
from attnlab.ops import diagonal_plus_low_rank
from attnlab.ops.counts import check_counts
from attnlab.ops.layer import l2_normalize

LOG_SLOWEST = math.exp(-0.5)
"""A gate is at least e^(−e^(−1/2)) = 0.545."""


@final
@dataclass(frozen=True)
class Rwkv7(Chunked):
    """Delta rule with a decay and a strength per channel, and a removal key of its own (the time mixing of RWKV-7).

    S_t = (diag(w_t) − κ_tᵀ (a_t ⊙ κ_t))ᵀ S_{t-1} + k̃_tᵀ v_t, y_t = q_t S_t

    w = exp(−e^(−1/2) sigmoid(decay)), a = sigmoid(strength), κ = unit(k ⊙ ξ), k̃ = k ⊙ (1 + (a − 1) ⊙ α)

    The extra inputs `decay` and `strength` are one number per token and key channel. `removal` ξ and `replacement` α
    are learned, one per key channel. The state is read with κ before it decays, and what was read is written under a ⊙
    κ. Queries are not scaled. The state is a matrix [K V]. The norm and the output gate belong to the module. Token
    shift and the bonus of a token for itself are left out. Rotary positions are not supported: channels that decay at
    different rates do not rotate together.

    Raises:
        ValueError: if `chunk` is below 1, or `epsilon` below 0.

    Source: Peng et al. 2025, eq. 7-17 (arXiv 2503.14456).
    """

    chunk: int = 32
    """Number of tokens per chunk."""
    epsilon: float = 1e-6
    """ε in the normalisation of the removal key, x / √(‖x‖² + ε). The authors' code divides by max(‖x‖, 1e-12)."""

    def __post_init__(self):
        check_counts(chunk=self.chunk)
        if not self.epsilon >= 0:
            raise ValueError(f"epsilon={self.epsilon} must be 0 or more")

    @property
    def tokens(self):
        """`decay`: decay per key channel, before the sigmoid. `strength`: strength of the removal, likewise."""
        return {"decay": ("K",), "strength": ("K",)}

    @property
    def learned(self):
        """`removal` ξ and `replacement` α, per key channel."""
        return {"removal": ("K",), "replacement": ("K",)}

    def initial(self, key, K, V):
        """Returns 0.85 for ξ and 1 for α, as in an earlier version of the authors' code.

        Later versions have 1.02 for α, and values of ξ around 0.7 that depend on the channel.
        """
        return {"removal": jnp.full(K, 0.85, jnp.float32), "replacement": jnp.ones(K, jnp.float32)}

    def update(self, memory, q, k, v, block, *, bias=None, decay, strength, removal, replacement):
        """Processes new tokens by chunks."""
        cast = lambda x: x.astype(memory.dtype)
        q, k, decay, strength, removal, replacement = map(cast, (q, k, decay, strength, removal, replacement))
        log_gates, a = -LOG_SLOWEST * jax.nn.sigmoid(decay), jax.nn.sigmoid(strength)
        read = l2_normalize(k * removal[None], self.epsilon)
        written = k * (1 + (a - 1) * replacement[None])
        y, memory = diagonal_plus_low_rank.causal(memory, q, written, v, a * read, -read, log_gates, block, self.chunk)
        return y.astype(v.dtype), memory

    def cost(self, T, S, K, V, block=None):
        """Counts the products of a transition that is diagonal plus a matrix of rank one."""
        cost = super().cost(T, S, K, V, block)
        return Cost(diagonal_plus_low_rank.flops(T, K, V, self.at_once(block)), cost.bytes, cost.state_bytes)
