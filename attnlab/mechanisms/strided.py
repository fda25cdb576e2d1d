"""Strided attention, of the sparse transformer."""

from dataclasses import dataclass, field

from attnlab.mechanisms.softmax import Softmax
from attnlab.ops.mask import Dilated, Window


@dataclass(frozen=True)
class Strided(Softmax):
    """y_t = softmax(score(q_t, k)) v over |t−j| < stride and every stride-th key besides (Child et al. 2019).

    Section 4.2: (t−j) mod stride = 0, or −stride < t−j < stride: two steps lead from any token to any other. The paper's is causal;
    so is this under a causal mask.
    """

    stride: int = 32
    block: int | None = field(default=64, kw_only=True)

    @property
    def pattern(self):
        """The window, and the column."""
        return Window(self.stride, self.stride) | Dilated(self.stride)

    def _pairs(self, T, S):
        return T * min(S, 2 * self.stride + S // self.stride)
