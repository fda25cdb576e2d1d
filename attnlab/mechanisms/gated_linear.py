"""Gated linear attention: one gate per channel."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, final

from attnlab.mechanisms.chunked import Chunked, divide_by_sqrt_width
from attnlab.ops import decay
from attnlab.ops.gate import log_sigmoid


@final
@dataclass(frozen=True)
class GatedLinear(Chunked):
    """Linear attention whose state decays by one gate per key channel (GLA).

    S_t = diag(a_t) S_{t-1} + k_tᵀ v_t, y_t = q_t/√K S_t, a = sigmoid(gate)^(1/τ)

    The extra input `gate` is one number per token and key channel. The state is a matrix [K V]. Rotary positions are
    not supported: channels that decay at different rates do not rotate together. The norm and the output gate that
    follow belong to the module.

    Raises:
        ValueError: if `chunk` is below 1, or `temperature` is not positive.

    Source: Yang et al. 2023, section 4.4.
    """

    temperature: float = 16.0
    """Temperature τ of the gates. Larger values forget more slowly."""
    chunk: int = 32
    """Number of tokens per chunk."""
    scale_queries: bool = True
    """Whether to divide q by √K, as the authors' code does. The paper does not."""
    missing_values: ClassVar[dict] = {"scale_queries": False}
    """Values of fields that are missing in older saved configurations."""

    def __post_init__(self):
        super().__post_init__()
        if not self.temperature > 0:
            raise ValueError(f"temperature={self.temperature} must be positive")

    @property
    def tokens(self):
        """`gate`: one number per key channel, before the sigmoid."""
        return {"gate": ("K",)}

    def update(self, memory, q, k, v, block, *, bias=None, gate):
        """Processes new tokens by chunks."""
        log_gates = log_sigmoid(gate.astype(memory.dtype), self.temperature)
        q = divide_by_sqrt_width(q.astype(memory.dtype)) if self.scale_queries else q
        y, memory = decay.causal(memory, q, k, v, log_gates, block, self.chunk)
        return y.astype(v.dtype), memory
