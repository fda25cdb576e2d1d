"""Blocks of successive keys, and which of them a query picks."""

from __future__ import annotations

from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jaxtyping import Array, Bool, Float, Int

from attnlab.ops.mask import ArrayOrNumpy
from attnlab.ops.precision import accumulation_dtype, matmul


@dataclass(frozen=True)
class KeyBlocks:
    """S keys in B blocks of `size` positions each: block 0 holds the positions 0 … size−1, and so on."""

    size: int
    """Positions per block."""
    count: int
    """Number of blocks B, enough for as many positions as there are keys."""
    own: Int[Array, " T"]
    """Block of each query [T]. It is B or more for a position beyond all blocks."""
    block: Int[Array, " S"]
    """Block of each key [S]."""

    @classmethod
    def of(cls, i: Int[ArrayOrNumpy, " T"], j: Int[ArrayOrNumpy, " S"], size: int) -> KeyBlocks:
        """Returns the blocks of keys at positions j, for queries at positions i.

        Raises:
          ValueError: if a query is known to lie beyond all blocks.
        """
        keys = j.shape[0]
        count = max(1, -(-keys // size))
        if not isinstance(i, Tracer) and (last := int(np.max(np.asarray(i), initial=0))) >= count * size:
            raise ValueError(f"{keys} keys have positions 0 … {count * size - 1} in blocks of {size}, got {last}")
        return cls(size, count, jnp.asarray(i) // size, jnp.asarray(j) // size)

    @property
    def inside(self) -> Bool[Array, " T"]:
        """Whether each query lies within a block [T]."""
        return self.own < self.count

    @property
    def numbers(self) -> Int[Array, "1 B"]:
        """The numbers of the blocks, as one row."""
        return jnp.arange(self.count, dtype=self.own.dtype)[None, :]

    def mean_scores(
        self, q: Float[Array, "T K"], k: Float[Array, "S K"], allowed: Bool[Array, "T S"]
    ) -> tuple[Float[Array, "T B"], Bool[Array, "T B"]]:
        """Returns the product of each query with the mean of the keys that it sees in each block.

        Args:
          q: queries [T K].
          k: keys [S K].
          allowed: keys that each query sees [T S].

        Returns:
          The products [T B], zero for blocks in which a query sees no key, and whether it sees any [T B].
        """
        dtype = accumulation_dtype(q.dtype)
        member = (self.block[:, None] == self.numbers).astype(dtype)
        count = matmul(allowed.astype(dtype), member)
        total = matmul(jnp.where(allowed, matmul(q, k.T), 0), member)
        return total / jnp.maximum(count, 1), count > 0

    def best(self, scores: Float[Array, "T B"], picks: int) -> Bool[Array, "T B"]:
        """Returns the `picks` blocks with the largest scores of each query. The choice has no gradient."""
        best = jax.lax.top_k(jax.lax.stop_gradient(scores), min(picks, self.count))[1]
        return jnp.any(best[:, :, None] == jnp.arange(self.count, dtype=best.dtype)[None, None, :], axis=1)

    def per_key(self, x: Float[Array, "T B"] | Bool[Array, "T B"]) -> Float[Array, "T S"] | Bool[Array, "T S"]:
        """Returns what belongs to the block of each key: x[t, block of j]."""
        return jnp.take(x, jnp.clip(self.block, 0, self.count - 1), axis=1)
