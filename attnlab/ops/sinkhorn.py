"""Sinkhorn's balancing: a matrix of scores as a soft permutation."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from attnlab.ops.softmax import masked_softmax


def balance(
    scores: Float[Array, "A B"], rows: Bool[Array, " A"], columns: Bool[Array, " B"], steps: int
) -> Float[Array, "A B"]:
    """exp(scores), rows and columns normalised in turns `steps` times, in log space, and rows once more at the end.

    Of the rows and columns that count; the others are zero. The rows sum to one, and the columns tend to one sum as
    `steps` grows: with as many rows as columns, to one, and S to a doubly stochastic matrix (Sinkhorn 1964; Tay et
    al. 2020, where columns come last).
    """
    allowed = rows[:, None] & columns[None, :]

    # What rows and columns are divided by is kept, in logarithms, and not the matrix: scores + left + right.
    def again(right, _):
        left = -_log_sum(scores + right[None, :], allowed, axis=1)
        return -_log_sum(scores + left[:, None], allowed, axis=0), None

    right, _ = jax.lax.scan(again, jnp.zeros(scores.shape[1], scores.dtype), length=steps)
    return masked_softmax(scores + right[None, :], allowed)


def _log_sum(x: Float[Array, "A B"], allowed: Bool[Array, "A B"], axis: int) -> Array:
    """log Σ exp(x) over what is allowed; 0 with zero gradient where nothing is."""
    peak = jax.lax.stop_gradient(jnp.max(x, axis=axis, keepdims=True, initial=-jnp.inf, where=allowed))
    peak = jnp.where(jnp.isneginf(peak), jnp.zeros_like(peak), peak)
    # Selected before the exponential as well as after it: an overflow not taken still makes the gradient NaN.
    share = jnp.where(allowed, jnp.exp(jnp.where(allowed, x - peak, 0)), 0)
    total = jnp.sum(share, axis=axis)
    return jnp.squeeze(peak, axis) + jnp.log(jnp.where(total == 0, jnp.ones_like(total), total))
