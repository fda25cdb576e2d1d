"""Gated linear attention: a gate a channel."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from attnlab.mechanisms.chunked import Chunked, divide_by_sqrt_width
from attnlab.ops import decay
from attnlab.ops.gate import log_sigmoid


@dataclass(frozen=True)
class GatedLinear(Chunked):
    """S_t = diag(a_t) S_{t-1} + k_tᵀ v_t, y_t = q_t/√K S_t, a = sigmoid(gate)^(1/τ) (GLA: Yang et al. 2023, 4.4).

    `gate` is a raw number for every channel of a key. The paper does not divide q by √K, its authors' code does; the
    paper's is `scale_queries` False. By chunks of `chunk` tokens; its state is a [K V] matrix. Does not turn: channels
    that fade apart do not rotate together. The norm and the output gate are the module's business.

    Raises ValueError for a chunk below 1, and for a temperature τ that is not positive.
    """

    temperature: float = 16.0
    chunk: int = 32
    scale_queries: bool = True
    missing_values: ClassVar[dict] = {"scale_queries": False}

    def __post_init__(self):
        super().__post_init__()
        if not self.temperature > 0:
            raise ValueError(f"temperature={self.temperature} must be positive")

    @property
    def tokens(self):
        """The raw gate of every key channel."""
        return {"gate": ("K",)}

    def update(self, memory, q, k, v, block, *, bias=None, gate):
        """Tokens after a state, by chunks."""
        log_gates = log_sigmoid(gate.astype(memory.dtype), self.temperature)
        q = divide_by_sqrt_width(q.astype(memory.dtype)) if self.scale_queries else q
        y, memory = decay.causal(memory, q, k, v, log_gates, block, self.chunk)
        return y.astype(v.dtype), memory
