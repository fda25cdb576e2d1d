"""The order of the tokens that are not padding."""

import jax.numpy as jnp
from jaxtyping import Array, Bool, Int

from attnlab.ops.mask import ArrayOrNumpy


def by_position(keep: Bool[ArrayOrNumpy, " T"], place: Int[ArrayOrNumpy, " T"]) -> Int[Array, " T"]:
    """Returns the indices of the kept tokens in the order of their positions, followed by those of the others.

    Tokens with equal positions keep their order.

    Args:
      keep: which tokens are kept [T].
      place: position of each token [T].

    Returns:
      A permutation of 0 … T−1.
    """
    last = jnp.iinfo(jnp.int32).max
    return jnp.argsort(jnp.where(keep, jnp.asarray(place, jnp.int32), last), stable=True).astype(jnp.int32)


def ranks(order: Int[Array, " T"]) -> Int[Array, " T"]:
    """Returns the rank of every token, given their order: the number of tokens before it."""
    return jnp.zeros_like(order).at[order].set(jnp.arange(order.shape[0], dtype=jnp.int32))
