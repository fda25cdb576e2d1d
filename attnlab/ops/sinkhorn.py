"""Sinkhorn balancing: turns a matrix of scores into a soft permutation."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from attnlab.ops.softmax import masked_softmax
from attnlab.ops.varying import varying_like


def balance(
    scores: Float[Array, "A B"], rows: Bool[Array, " A"], columns: Bool[Array, " B"], steps: int
) -> Float[Array, "A B"]:
    """Normalises rows and columns of exp(scores) in turn, in log space.

    There are `steps` rounds of rows and columns, and a last normalisation of the rows. The rows sum to one. The columns
    tend to equal sums as `steps` grows. With as many rows as columns these are one, and the matrix becomes doubly
    stochastic.

    Args:
      scores: scores [A B].
      rows: which rows count [A]; the others are zero.
      columns: which columns count [B]; the others are zero.
      steps: number of rounds.

    Returns:
      The balanced matrix [A B].

    Source: Sinkhorn 1964; Tay et al. 2020, where columns are normalised last.
    """
    allowed = rows[:, None] & columns[None, :]

    # The scan carries only the logarithms of the columns' divisors. The matrix is scores + left + right.
    def again(right, _):
        left = -_log_sum(scores + right[None, :], allowed, axis=1)
        return -_log_sum(scores + left[:, None], allowed, axis=0), None

    right, _ = jax.lax.scan(again, varying_like(jnp.zeros(scores.shape[1], scores.dtype), scores), length=steps)
    return masked_softmax(scores + right[None, :], allowed)


def _log_sum(x: Float[Array, "A B"], allowed: Bool[Array, "A B"], axis: int) -> Array:
    """Returns log Σ exp(x) over the allowed entries; 0, with zero gradient, if there are none."""
    peak = jax.lax.stop_gradient(jnp.max(x, axis=axis, keepdims=True, initial=-jnp.inf, where=allowed))
    peak = jnp.where(jnp.isneginf(peak), jnp.zeros_like(peak), peak)
    # Mask before the exponential as well as after it. An overflow in the branch not taken makes the gradient NaN.
    share = jnp.where(allowed, jnp.exp(jnp.where(allowed, x - peak, 0)), 0)
    total = jnp.sum(share, axis=axis)
    return jnp.squeeze(peak, axis) + jnp.log(jnp.where(total == 0, jnp.ones_like(total), total))
