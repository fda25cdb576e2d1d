"""Longformer: a window and global tokens."""

from dataclasses import dataclass, field
from typing import final

from attnlab.mechanisms.pattern_softmax import PatternSoftmax
from attnlab.ops.mask import Global, Window


@final
@dataclass(frozen=True)
class Longformer(PatternSoftmax):
    """Softmax attention over a window and global tokens (Longformer).

    y_t = softmax(score(q_t, k)) v over the keys with −right < t−j < left, or t < first, or j < first

    The paper gives global tokens their own projections. Here all tokens share one. Time is O(T·(left+right+first)) if
    positions are known while tracing. By blocks, forward-mode derivatives are not supported.

    Source: Beltagy et al. 2020, section 3.1.
    """

    left: int = 64
    """Number of keys up to and including the query's own position."""
    right: int = 64
    """Number of keys from the query's own position on. A causal mask removes the later ones."""
    first: int = 1
    """Number of global tokens, at the start. They see all tokens, and all tokens see them."""
    block: int | None = field(default=64, kw_only=True)
    """Number of queries and of keys per block, or None to compute all pairs."""

    @property
    def pattern(self):
        """The window and the global tokens."""
        return Window(self.left, self.right) | Global(self.first)

    def _pairs(self, T, S):
        return T * min(S, self.left + self.right - 1 + self.first) + min(T, self.first) * S
