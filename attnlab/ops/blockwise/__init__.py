"""Softmax attention by blocks: the same result, in memory linear in T and S, forward and backward.

A block of queries meets one panel of keys after another, keeping for each query the peak of its scores so far, the
sum of exponentials below that peak, and the values mixed by them (Milakov and Gimelshein 2018; Rabe and Staats 2021;
Dao et al. 2022). The backward pass computes the scores again from the logarithm of that sum. Blocks that a mask empties
are never computed, and it is asked only where it allows some pairs of a block and not others.
"""

from attnlab.ops.blockwise.attend import attend, equal_blocks, merge_parts
from attnlab.ops.blockwise.schedule import BlockVisits, LoopSchedule, Rule

__all__ = ["BlockVisits", "LoopSchedule", "Rule", "attend", "equal_blocks", "merge_parts"]
