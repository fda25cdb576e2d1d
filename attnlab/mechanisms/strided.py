"""Strided attention, of the sparse transformer."""

from dataclasses import dataclass, field

import numpy as np

from attnlab.mechanisms.softmax import Softmax
from attnlab.ops import blockwise
from attnlab.ops.mask import Dilated, Window


@dataclass(frozen=True)
class Strided(Softmax):
    """y_t = softmax(score(q_t, k)) v over |t−j| < stride and every stride-th key besides (Child et al. 2019).

    Section 4.2: (t−j) mod stride = 0, or −stride < t−j < stride: two steps lead from any token to any other. The
    paper's is causal; so is this under a causal mask. Time O(T·(stride + T/stride)) where positions are known while
    tracing: the window by blocks, the columns by blocks of tokens sorted by column, put together by their sums. By
    blocks it has no forward-mode derivatives.
    """

    stride: int = 32
    block: int | None = field(default=64, kw_only=True)

    @property
    def pattern(self):
        """The window, and the column."""
        return Window(self.stride, self.stride) | Dilated(self.stride)

    def _by_blocks(self, q, k, v, scores, rule, i, j, block):
        if not (isinstance(i, np.ndarray) and isinstance(j, np.ndarray)):
            return super()._by_blocks(q, k, v, scores, rule, i, j, block)
        Rule, itself = blockwise.Rule, Window(1, 1)
        near = [rule, Rule(Window(self.stride, self.stride), i, j)]
        row, column = (np.argsort(x % self.stride, kind="stable") for x in (i, j))
        # In that order columns are one after another; a token's own key is in the window already.
        far = [
            Rule(rule.mask, rule.i[row], rule.j[column]),
            Rule(itself, i[row] % self.stride, j[column] % self.stride),
            Rule(~itself, i[row], j[column]),
        ]
        y, norm = blockwise.attend(q[row], k[column], v[column], scores, far, i=i[row], j=j[column], block=block)
        back = np.argsort(row)
        window = blockwise.attend(q, k, v, scores, near, i=i, j=j, block=block)
        return blockwise.merge_parts([window, (y[back], norm[back])])

    def _pairs(self, T, S):
        # A window and a column, of whole blocks.
        return T * (min(S, 2 * self.stride) + min(S, S // self.stride + self.block))
