"""Softmax attention by blocks: the same result as softmax, in memory linear in T and S, forward and backward.

A block of queries attends to one panel of keys after another. For each query it keeps the peak of its scores so far,
the sum of exponentials relative to that peak, and the weighted sum of values (Milakov and Gimelshein 2018; Rabe and
Staats 2021; Dao et al. 2022). The backward pass recomputes the scores from the logarithm of that sum. Blocks without
any allowed pair are never computed. The mask is evaluated only for blocks in which some pairs are allowed and others
are not.
"""

from attnlab.ops.blockwise.attend import attend, equal_blocks, merge_parts
from attnlab.ops.blockwise.schedule import BlockVisits, LoopSchedule, PositionedMask

__all__ = ["BlockVisits", "LoopSchedule", "PositionedMask", "attend", "equal_blocks", "merge_parts"]
