"""Strided attention, from the sparse transformer."""

from dataclasses import dataclass, field
from typing import final

import jax.numpy as jnp
import numpy as np

from attnlab.mechanisms.pattern_softmax import PatternSoftmax
from attnlab.ops import blockwise
from attnlab.ops.mask import Dilated, Window


@final
@dataclass(frozen=True)
class Strided(PatternSoftmax):
    """Softmax attention over a window and every stride-th key (sparse transformer).

    y_t = softmax(score(q_t, k)) v over the keys with |t−j| < stride or (t−j) mod stride = 0

    Two steps lead from any token to any other. The paper's form is causal, as this one is under a causal mask. Time is
    O(T·(stride + T/stride)) if positions are known while tracing. The window is computed by blocks, and the columns by
    blocks of tokens sorted by column. Both results are then merged by their softmax sums. By blocks, forward-mode
    derivatives are not supported.

    Source: Child et al. 2019, section 4.2.
    """

    stride: int = 32
    """Half-width of the window, and distance between the other keys."""
    block: int | None = field(default=64, kw_only=True)
    """Number of queries and of keys per block, or None to compute all pairs."""

    @property
    def pattern(self):
        """The window and the column."""
        return Window(self.stride, self.stride) | Dilated(self.stride)

    def _by_blocks(self, q, k, v, scores, positioned, i, j, block):
        """Attends by blocks to the window and to the sorted columns, and merges both results.

        If positions are not known while tracing, the whole pattern is computed in the given order.
        """
        if not (isinstance(i, np.ndarray) and isinstance(j, np.ndarray)):
            return super()._by_blocks(q, k, v, scores, positioned, i, j, block)
        itself = Window(1, 1)
        near = [positioned, blockwise.PositionedMask(Window(self.stride, self.stride), i, j)]
        row, column = (np.argsort(x % self.stride, kind="stable") for x in (i, j))
        # In this order each column is contiguous. A token's own key is left out here, because it is in the window.
        far = [
            blockwise.PositionedMask(positioned.mask, positioned.i[row], positioned.j[column]),
            blockwise.PositionedMask(itself, i[row] % self.stride, j[column] % self.stride),
            blockwise.PositionedMask(~itself, i[row], j[column]),
        ]
        y, norm = blockwise.attend(q[row], k[column], v[column], scores, far, i=i[row], j=j[column], block=block)
        back = np.argsort(row)
        window = blockwise.attend(q, k, v, scores, near, i=i, j=j, block=block)
        parts = [window, (y[back], norm[back])]
        return blockwise.merge_parts(parts), jnp.logaddexp(window[1], norm[back])

    def _pairs(self, T, S):
        # A window and a column, rounded up to whole blocks.
        return T * (min(S, 2 * self.stride) + min(S, S // self.stride + self.block))
