"""HGRN2: gated linear attention whose keys are what the gates forget."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import jax
import jax.numpy as jnp

from attnlab.mechanisms.chunked import Chunked, divide_by_sqrt_width
from attnlab.mechanisms.cost import Cost
from attnlab.ops import decay


@final
@dataclass(frozen=True)
class Hgrn2(Chunked):
    """Gated linear attention that writes as much as it forgets (HGRN2).

    S_t = diag(f_t) S_{t-1} + (1 − f_t)ᵀ v_t, y_t = SiLU(q_t) S_t, f = b + (1 − b) sigmoid(k)

    The keys are the forget gates before the sigmoid, so there is no extra input. b is `lower_bound`. The state is a
    matrix [K V]. Rotary positions are not supported: channels that decay at different rates do not rotate together.
    The norm that follows belongs to the module. Queries are not scaled, as in the paper. Flash-linear-attention divides
    them by √K (`scale_queries`).

    Raises:
        ValueError: if `chunk` is below 1, or `lower_bound` is not in 0 … 1, without 1.

    Source: Qin et al. 2024, eq. 4 (arXiv 2404.07904).
    """

    lower_bound: float = 0.0
    """Least value b of the gates. The paper learns one per layer and channel that grows from layer to layer."""
    chunk: int = 32
    """Number of tokens per chunk."""
    scale_queries: bool = False
    """Whether to divide SiLU(q) by √K, as flash-linear-attention does. A norm of the output all but undoes it."""

    def __post_init__(self):
        super().__post_init__()
        if not 0 <= self.lower_bound < 1:
            raise ValueError(f"lower_bound={self.lower_bound} must be in 0 … 1, without 1")

    def update(self, memory, q, k, v, block, *, bias=None):
        """Processes new tokens by chunks."""
        q, k = (x.astype(memory.dtype) for x in (q, k))
        # 1 − f is computed as a sigmoid of its own: for gates close to one the difference would lose all digits.
        written = (1 - self.lower_bound) * jax.nn.sigmoid(-k)
        log_gates = jnp.log1p(-written) if self.lower_bound else jax.nn.log_sigmoid(k)
        written = jnp.where(jnp.asarray(block.keep)[:, None], written, 0)
        q = divide_by_sqrt_width(jax.nn.silu(q)) if self.scale_queries else jax.nn.silu(q)
        y, memory = decay.causal(memory, q, written, v, log_gates, block, self.chunk)
        return y.astype(v.dtype), memory

    def cost(self, T, S, K, V, block=None):
        """Counts one gate per key channel."""
        cost = super().cost(T, S, K, V, block)
        flops = decay.flops(T, K, V, self.at_once(block), K)
        return Cost(flops, cost.bytes, cost.state_bytes)
