"""Gated slot attention: softmax over a fixed number of slots."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, final

import jax
import jax.numpy as jnp

from attnlab.mechanisms.chunked import Chunked, divide_by_sqrt_width
from attnlab.mechanisms.cost import Cost
from attnlab.ops import decay, slots
from attnlab.ops.counts import check_counts
from attnlab.ops.gate import log_sigmoid
from attnlab.ops.precision import accumulation_dtype


@final
@dataclass(frozen=True)
class GatedSlots(Chunked):
    """Softmax attention over a fixed number of slots that decay (gated slot attention, GSA).

    K̃_t = K̃_{t-1} diag(a_t) + k_tᵀ (1 − a_t), Ṽ_t = diag(a_t) Ṽ_{t-1} + (1 − a_t)ᵀ v_t, y_t = softmax(q_t K̃_t) Ṽ_t

    a = sigmoid(gate)^(1/τ). The extra input `gate` is one number per token and slot. SiLU is applied to q and k, as in
    the authors' code (flash-linear-attention). That code also applies SiLU to v, and to the output before its norm.
    These activations, the norm and the output gate belong to the module. Queries are not scaled, as in the paper and in
    the authors' layer. The state is two matrices, [K M] and [M V], for M slots. Rotary positions are not supported,
    because SiLU follows them.

    Raises:
        ValueError: if `chunk` or `slots` is below 1, or `temperature` is not positive.

    Source: Zhang et al. 2024, eq. 11-12 (arXiv 2409.07146).
    """

    slots: int = 64
    """Number of slots M."""
    temperature: float = 8.0
    """Temperature τ of the gates. Larger values forget more slowly."""
    chunk: int = 32
    """Number of tokens per chunk."""
    scale_queries: bool = False
    """Whether to divide q by √K after SiLU, as the authors' function does if no scale is given. Their layer gives 1."""
    missing_values: ClassVar[dict] = {"scale_queries": True}
    """Values of fields that are missing in older saved configurations."""

    def __post_init__(self):
        check_counts(chunk=self.chunk, slots=self.slots)
        if not self.temperature > 0:
            raise ValueError(f"temperature={self.temperature} must be positive")

    @property
    def tokens(self):
        """`gate`: one number per slot, before the sigmoid."""
        return {"gate": (self.slots,)}

    def init_memory(self, length, K, V, dtype):
        """Returns empty slots of keys [K M] and of values [M V], in at least float32."""
        dtype = accumulation_dtype(dtype)
        return jnp.zeros((K, self.slots), dtype), jnp.zeros((self.slots, V), dtype)

    def update(self, memory, q, k, v, block, *, bias=None, gate):
        """Processes new tokens by chunks."""
        keys, values = memory
        q, k, gate = (x.astype(keys.dtype) for x in (q, k, gate))
        q, k = jax.nn.silu(q), jax.nn.silu(k)
        q = divide_by_sqrt_width(q) if self.scale_queries else q
        log_gates = log_sigmoid(gate, self.temperature)
        written = jnp.where(jnp.asarray(block.keep)[:, None], -jnp.expm1(log_gates), 0)
        scores, keys = slots.causal(keys, q, k, written, log_gates, block, self.chunk)
        shares = jax.nn.softmax(scores, axis=1)
        y, values = decay.causal(values, shares, written, v, log_gates, block, self.chunk)
        return y.astype(v.dtype), (keys, values)

    def cost(self, T, S, K, V, block=None):
        """Counts writing and reading the slots of keys and of values, and the softmax over slots."""
        cost, size, M = super().cost(T, S, K, V, block), self.at_once(block), self.slots
        flops = slots.flops(T, K, M, size) + decay.flops(T, M, V, size, M) + 9 * T * M
        return Cost(flops, cost.bytes, 4 * M * (K + V))
