"""Rows of a table, looked up by positions that may be none of its own."""

from typing import Any

import jax.numpy as jnp
from jaxtyping import Array, Int, Shaped


def lookup(table: Shaped[Array, "N ..."] | Any, at: Int[Array, "..."] | Any, missing: Any) -> Shaped[Array, "..."]:
    """table[at], and `missing` for what is out of range: jax itself would clamp, or count from the end."""
    table, at = jnp.asarray(table), jnp.asarray(at)
    return table.at[at].get(mode="fill", fill_value=missing, wrap_negative_indices=False)
