"""Blocks of one long sequence, in an order that is a function of (seed, place) alone."""

from functools import lru_cache

import numpy as np

from attnlab.data.rng import generator


class Blocks:
    """Blocks of `length` ids and the id after each, cut from `ids` [N].

    Epoch after epoch, each begins at a place of its own, cuts what follows into blocks, and takes them in a random
    order: so each id, those at the ends apart, comes once an epoch, with others before it each time. `count` is how
    many blocks an epoch has. Raises ValueError for fewer ids than a block and the one after it.
    """

    def __init__(self, ids: np.ndarray, length: int):
        if length < 1 or len(ids) <= length:
            raise ValueError(f"{len(ids)} ids must be more than {length=}, which must be at least 1")
        self.ids, self.length = ids, length
        # One fewer than fit, so that an epoch may begin in many places and all are equally long.
        self.count = max(1, len(ids) // length - 1)

    def batch(self, seed: int, step: int, size: int) -> np.ndarray:
        """The blocks of a step, each with the id after it: [size, length + 1]."""
        places = divmod(step * size + np.arange(size), self.count)
        starts = np.array([self._start(seed, int(epoch), int(place)) for epoch, place in zip(*places, strict=True)])
        return self.ids[starts[:, None] + np.arange(self.length + 1)]

    def _start(self, seed: int, epoch: int, place: int) -> int:
        first, order = _epoch(seed, epoch, self.count, len(self.ids) - self.count * self.length)
        return int(first + self.length * order[place])


# A cache, not a state: the same arguments give the same epoch, and each is asked for many times.
@lru_cache(maxsize=64)
def _epoch(seed: int, epoch: int, count: int, begins: int) -> tuple[int, np.ndarray]:
    """Where an epoch begins, below `begins`, and the order of its blocks."""
    random = generator(seed, epoch)
    first, order = int(random.integers(begins)), random.permutation(count)
    order.setflags(write=False)
    return first, order
