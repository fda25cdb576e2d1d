"""Window and global tokens together."""

from dataclasses import dataclass, field

from attnlab.mechanisms.softmax import Softmax
from attnlab.ops.mask import Global, Window


@dataclass(frozen=True)
class Longformer(Softmax):
    """y_t = softmax(score(q_t, k)) v over a window, and the `first` tokens, which see all (Beltagy et al. 2020).

    Section 3.1: −right < t−j < left, or t < first, or j < first. The paper gives global tokens projections of their
    own; here all share one. Time O(T·(left+right+first)) where positions are known while tracing. By blocks it has no
    forward-mode derivatives.
    """

    left: int = 64
    right: int = 64
    first: int = 1
    block: int | None = field(default=64, kw_only=True)

    @property
    def pattern(self):
        """The window, and the global tokens."""
        return Window(self.left, self.right) | Global(self.first)

    def _pairs(self, T, S):
        return T * min(S, self.left + self.right - 1 + self.first) + min(T, self.first) * S
