"""Cumulative sums in twice the precision, so that their differences are exact to rounding."""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from attnlab.ops.mask import ArrayOrNumpy


class PreciseSums(NamedTuple):
    """Cumulative sums as `high + low`, where `low` is what `high` leaves out."""

    high: Float[Array, " T"]
    """The sums, rounded [T]."""
    low: Float[Array, " T"]
    """What rounding left out [T]."""

    def difference(self, i: Int[ArrayOrNumpy, " T"], j: Int[ArrayOrNumpy, " S"]) -> Float[Array, "T S"]:
        """Returns the sums up to and including each i, minus those of each j: the sum of the terms between them."""
        return (self.high[i][:, None] - self.high[j][None, :]) + (self.low[i][:, None] - self.low[j][None, :])


@jax.custom_jvp
def precise_cumsum(x: Float[Array, " T"]) -> PreciseSums:
    """Returns the cumulative sums of x in twice its precision (Knuth's TwoSum at every addition)."""

    def add(a, b):
        high = a.high + b.high
        part = high - a.high
        error = (a.high - (high - part)) + (b.high - part)
        return PreciseSums(high, a.low + b.low + error)

    return jax.lax.associative_scan(add, PreciseSums(x, jnp.zeros_like(x)))


@precise_cumsum.defjvp
def _(primals, tangents):
    """The tangent is the cumulative sum of the tangents. Through the error terms it would be the same, with noise."""
    change = jnp.cumsum(tangents[0])
    return precise_cumsum(*primals), PreciseSums(change, jnp.zeros_like(change))
