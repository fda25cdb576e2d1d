"""Table lookup with a value for indices out of range."""

import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike
from jaxtyping import Array, Shaped


def lookup(table: ArrayLike, at: ArrayLike, missing: bool | int | float | np.number) -> Shaped[Array, "..."]:
    """Returns table[at], and `missing` for indices out of range.

    Plain jax indexing would clamp such indices, or count negative ones from the end.

    Args:
      table: rows [N …].
      at: indices, of any shape.
      missing: value for indices below 0 or from N on.
    """
    table, at = jnp.asarray(table), jnp.asarray(at)
    return table.at[at].get(mode="fill", fill_value=missing, wrap_negative_indices=False)
