"""The order of tokens among those that count."""

import jax.numpy as jnp
from jaxtyping import Array, Bool, Int

from attnlab.ops.mask import Places


def by_position(keep: Bool[Places, " T"], place: Int[Places, " T"]) -> Int[Array, " T"]:
    """Where the kept tokens are to be found, in the order of their places; behind them, where the others are.

    Tokens of equal place keep the order in which they were given.
    """
    last = jnp.iinfo(jnp.int32).max
    return jnp.argsort(jnp.where(keep, jnp.asarray(place, jnp.int32), last), stable=True).astype(jnp.int32)


def ranks(order: Int[Array, " T"]) -> Int[Array, " T"]:
    """The rank of every token, given their order: how many tokens stand before it."""
    return jnp.zeros_like(order).at[order].set(jnp.arange(order.shape[0], dtype=jnp.int32))
