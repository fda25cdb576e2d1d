"""A mask of blocks drawn by chance, that every form of a call draws alike."""

from dataclasses import dataclass

import jax.numpy as jnp
import numpy as np

from attnlab.ops.mask.base import Mask
from attnlab.ops.mask.formula import _whole
from attnlab.ops.tree import pytree, static


@pytree
@dataclass(frozen=True)
class RandomBlocks(Mask):
    """Blocks of `size` positions, each of which picks `picks` of those before it at random: they see each other.

    A pick is a hash of the seed, the block and its number, modulo the block: it depends on no length, and is the same
    for positions that are known and for traced ones. Picks of a block may fall on the same one.
    """

    picks: int = static()
    size: int = static()
    seed: int = static(default=0)

    def __post_init__(self):
        _whole(0, "RandomBlocks", picks=self.picks, seed=self.seed)
        _whole(1, "RandomBlocks", size=self.size)

    def __call__(self, i, j):
        """Whether the block of either picked the block of the other."""
        return self._meet(i // self.size, j // self.size)

    def over(self, i0, i1, j0, j1):
        """By the blocks it touches."""
        of = lambda start, stop: np.arange(start // self.size, (stop - 1) // self.size + 1, dtype=np.int32)
        meet = self._meet(of(i0, i1), of(j0, j1))
        return True if meet.all() else None if meet.any() else False

    def _meet(self, a, b):
        meet = np.zeros((a.shape[0], b.shape[0]), bool)
        for n in range(self.picks):
            meet = meet | (self._pick(a, n)[:, None] == b[None, :]) | (a[:, None] == self._pick(b, n)[None, :])
        return meet & (a >= 0)[:, None] & (b >= 0)[None, :]

    def _pick(self, block, n):
        """The n-th pick of a block; −1 for the first block, which has none before it."""
        xp = np if isinstance(block, np.ndarray) else jnp
        mixed = _hash(_hash(_hash(block.astype(np.uint32)) ^ np.uint32(n)) ^ np.uint32(self.seed % 2**32))
        before = xp.maximum(block, 1).astype(np.uint32)
        return xp.where(block > 0, (mixed % before).astype(np.int32), np.int32(-1))


def _hash(x):
    """A mixing of 32 bits, one to one: multiplications and shifts (Wellons's triple32, 2018)."""
    x = (x ^ (x >> np.uint32(17))) * np.uint32(0xED5AD4BB)
    x = (x ^ (x >> np.uint32(11))) * np.uint32(0xAC4C1B51)
    x = (x ^ (x >> np.uint32(15))) * np.uint32(0x31848BAB)
    return x ^ (x >> np.uint32(14))
