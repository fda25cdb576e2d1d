"""The rounding error of a mechanism in each precision, by sequence length."""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import DTypeLike

from attnlab.analysis.forms import answer, attending, scanning
from attnlab.analysis.inputs import Inputs, draw
from attnlab.mechanisms.base import Mechanism
from attnlab.ops.mask import Causal

DTYPES = ("float32", "bfloat16", "float16")


def errors(mechanism: Mechanism, T: int, K: int = 64, V: int = 64) -> dict[str, dict[str, float | None]]:
    """Returns max |y − ŷ| / max |ŷ| by dtype, under the full and the causal mask.

    y is computed in the dtype, and ŷ in float64 from the same rounded inputs.

    Args:
      mechanism: the mechanism.
      T: number of tokens.
      K: width of queries and keys. Defaults to 64.
      V: width of values. Defaults to 64.

    Returns:
      {dtype: {"full": error, "causal": error}}; None if the mechanism does not support the mask.

    Raises:
      TypeError: if the result has another dtype than the values.
    """
    mechanism = mechanism.with_length(T)
    decodes = mechanism.traits.decodes
    runs = {
        "full": attending(mechanism),
        "causal": scanning(mechanism) if decodes else attending(mechanism, Causal()),
    }
    found: dict[str, dict[str, float | None]] = {dtype: {} for dtype in DTYPES}
    for mask, run in runs.items():
        exact = jax.jit(run)  # compiled once for all three dtypes
        for dtype in DTYPES:
            found[dtype][mask] = _error(exact, run, draw(mechanism, T, K, V, jnp.dtype(dtype)))
    return found


def _error(exact: Callable, run: Callable, rounded: Inputs) -> float | None:
    """Returns the error for one set of rounded inputs, or None if the mechanism does not support the call."""
    with jax.enable_x64(True):
        truth = answer(exact, *jax.tree.map(lambda x: x.astype(np.float64), rounded))
    if truth is None:
        return None
    # Disable 64-bit types, as in normal use. Otherwise parts of the computation could silently use float64.
    with jax.enable_x64(False):
        y = answer(jax.jit(run), *rounded)
    return None if y is None else _relative(y, truth, rounded[2].dtype)


def _relative(y: np.ndarray, truth: np.ndarray, dtype: DTypeLike) -> float:
    """Returns max |y − truth| / max |truth|."""
    if y.dtype != dtype:
        raise TypeError(f"expected an output of dtype {dtype}, like the values, got {y.dtype}")
    largest = np.max(np.abs(truth))
    return float(np.max(np.abs(y.astype(np.float64) - truth)) / largest)
