"""Sums over the keys after each key, without differences of cumulative sums, which lose small terms."""

import jax.numpy as jnp
from jaxtyping import Array, Float

from attnlab.ops.chunks import chunk_size

WIDTH = 32  # keys that are summed by one product with a triangle


def later_sums(x: Float[Array, "T S"]) -> Float[Array, "T S"]:
    """Returns Σ_{n>j} x_tn for every key j.

    Within groups of keys the sums are products with a triangle of ones, and sums of whole groups are added to them. If
    all terms have one sign, every sum is exact to rounding relative to itself.

    Args:
      x: one number per pair [T S].

    Returns:
      Sums [T S]. The last column is zero.
    """
    T, S = x.shape
    size = chunk_size(WIDTH, S)
    groups = jnp.pad(x, ((0, 0), (0, -S % size))).reshape(T, -1, size)
    after = jnp.tril(jnp.ones((size, size), x.dtype), -1)
    within = groups @ after
    if groups.shape[1] > 1:
        within += later_sums(groups.sum(axis=2))[:, :, None]
    return within.reshape(T, -1)[:, :S]


def later_sums_flops(T: int, S: int) -> int:
    """Returns the operations of `later_sums` for T×S numbers."""
    return T * S * (2 * chunk_size(WIDTH, S) + 2)
