"""Splits a sequence into chunks of equal size."""

from typing import Literal

import jax.numpy as jnp
import numpy as np
from jaxtyping import Shaped

from attnlab.ops.mask import ArrayOrNumpy


def pad_to_multiple(
    x: Shaped[ArrayOrNumpy, "T ..."], size: int, mode: Literal["constant", "edge"] = "constant"
) -> Shaped[ArrayOrNumpy, "S ..."]:
    """Appends rows up to a multiple of `size`.

    Args:
      x: rows [T …]. A numpy array stays one.
      size: the result's length is a multiple of it.
      mode: mode of `jnp.pad`. Defaults to zeros.
    """
    width = [(0, -x.shape[0] % size)] + [(0, 0)] * (x.ndim - 1)
    if width[0][1] == 0:
        return x
    return np.pad(x, width, mode) if isinstance(x, np.ndarray) else jnp.pad(x, width, mode)


def split_chunks(
    x: Shaped[ArrayOrNumpy, "T ..."], size: int, mode: Literal["constant", "edge"] = "constant"
) -> Shaped[ArrayOrNumpy, "N C ..."]:
    """Splits rows into chunks of `size` rows, padded as by `pad_to_multiple`.

    Args:
      x: rows [T …]. A numpy array stays one.
      size: rows per chunk.
      mode: mode of `jnp.pad`. Defaults to zeros.

    Returns:
      The chunks [N size …], where N is T / size, rounded up.
    """
    return pad_to_multiple(x, size, mode).reshape(-1, size, *x.shape[1:])
