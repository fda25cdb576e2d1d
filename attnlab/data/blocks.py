"""Blocks of one long sequence, in an order that is a function of (seed, position) only."""

from functools import lru_cache

import numpy as np

from attnlab.data.rng import generator


class Blocks:
    """Cuts a sequence of ids into blocks of equal length, each with the id that follows it.

    Each epoch starts at a random offset, cuts the ids from there into blocks, and takes the blocks in a random order.
    An id therefore occurs once per epoch, except for those near the two ends, and in a different context each time.

    Args:
      ids: the sequence [N].
      length: length of a block, without the id that follows it.

    Attributes:
      count: number of blocks in an epoch.

    Raises:
      ValueError: if `length` is below 1, or there are fewer than `length + 1` ids.
    """

    def __init__(self, ids: np.ndarray, length: int):
        if length < 1 or len(ids) <= length:
            raise ValueError(f"{length=} must be at least 1 and below the number of ids, {len(ids)}")
        self.ids, self.length = ids, length
        # One block fewer than would fit leaves room for a random offset, and gives all epochs the same length.
        self.count = max(1, len(ids) // length - 1)

    def batch(self, seed: int, step: int, size: int) -> np.ndarray:
        """Returns the blocks of a step, each with the id that follows it.

        Args:
          seed: seed of the order of blocks.
          step: index of the step, from 0.
          size: number of blocks in a batch.

        Returns:
          An array [size, length + 1] of ids.
        """
        places = divmod(step * size + np.arange(size), self.count)
        starts = np.array([self._start(seed, int(epoch), int(place)) for epoch, place in zip(*places, strict=True)])
        return self.ids[starts[:, None] + np.arange(self.length + 1)]

    def _start(self, seed: int, epoch: int, place: int) -> int:
        """Returns the offset at which the block at `place` of an epoch begins."""
        first, order = _epoch(seed, epoch, self.count, len(self.ids) - self.count * self.length)
        return int(first + self.length * order[place])


# Cached because every block of an epoch needs it. The cache never changes a result.
@lru_cache(maxsize=64)
def _epoch(seed: int, epoch: int, count: int, begins: int) -> tuple[int, np.ndarray]:
    """Returns the offset of an epoch, drawn below `begins`, and the order of its blocks [count]."""
    random = generator(seed, epoch)
    first, order = int(random.integers(begins)), random.permutation(count)
    order.setflags(write=False)
    return first, order
