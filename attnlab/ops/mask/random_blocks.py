"""A mask of randomly chosen blocks, the same for every form of a call."""

from dataclasses import dataclass

import jax.numpy as jnp
import numpy as np

from attnlab.ops.mask.base import Mask
from attnlab.ops.mask.formula import _whole
from attnlab.ops.tree import pytree, static


@pytree
@dataclass(frozen=True)
class RandomBlocks(Mask):
    """Connects each block of positions with `picks` random earlier blocks, in both directions.

    Each pick is a hash of the seed, the block and the number of the pick, modulo the index of the block. It does not
    depend on the sequence length, and is the same for known and for traced positions. A block may pick another block
    more than once.

    Raises:
      ValueError: if `picks` or `seed` is not an integer of at least 0, or `size` not one of at least 1.
    """

    picks: int = static()
    """Number of earlier blocks that each block picks."""
    size: int = static()
    """Positions per block."""
    seed: int = static(default=0)
    """Seed of the hash."""

    def __post_init__(self):
        _whole(0, "RandomBlocks", picks=self.picks, seed=self.seed)
        _whole(1, "RandomBlocks", size=self.size)

    def __call__(self, i, j):
        """Whether the block of either position picked the block of the other."""
        return self._meet(i // self.size, j // self.size)

    def over(self, i0, i1, j0, j1):
        """True if all pairs of blocks in the range meet, False if none does, else None."""
        of = lambda start, stop: np.arange(start // self.size, (stop - 1) // self.size + 1, dtype=np.int32)
        meet = self._meet(of(i0, i1), of(j0, j1))
        return True if meet.all() else None if meet.any() else False

    def _meet(self, a, b):
        """Whether blocks a [A] and b [B] are connected: [A B]."""
        meet = np.zeros((a.shape[0], b.shape[0]), bool)
        for n in range(self.picks):
            meet = meet | (self._pick(a, n)[:, None] == b[None, :]) | (a[:, None] == self._pick(b, n)[None, :])
        return meet & (a >= 0)[:, None] & (b >= 0)[None, :]

    def _pick(self, block, n):
        """Returns the n-th pick of each block; −1 for the first block, which has no earlier one."""
        xp = np if isinstance(block, np.ndarray) else jnp
        mixed = _hash(_hash(_hash(block.astype(np.uint32)) ^ np.uint32(n)) ^ np.uint32(self.seed % 2**32))
        before = xp.maximum(block, 1).astype(np.uint32)
        return xp.where(block > 0, (mixed % before).astype(np.int32), np.int32(-1))


def _hash(x):
    """A bijective 32-bit hash of multiplications and shifts (Wellons's triple32, 2018)."""
    x = (x ^ (x >> np.uint32(17))) * np.uint32(0xED5AD4BB)
    x = (x ^ (x >> np.uint32(11))) * np.uint32(0xAC4C1B51)
    x = (x ^ (x >> np.uint32(15))) * np.uint32(0x31848BAB)
    return x ^ (x >> np.uint32(14))
