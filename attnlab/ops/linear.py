"""Linear attention: a sum over keys and values that any query can read.

Given φ(q) and ψ(k), the weight of key j for query t is φ(q_t)·ψ(k_j), divided by the sum of weights if normalised. A
column of ones next to v accumulates that sum, so that one product gives numerator and denominator (Katharopoulos et
al. 2020, eq. 5 and 18-20).

If ψ(k_j) is e^{scale_j} times a given row, weights are taken relative to the largest scale that a query sees. The
normalised form does not depend on this common factor.
"""

from __future__ import annotations

from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Shaped

from attnlab.ops.mask import ArrayOrNumpy
from attnlab.ops.precision import divide, matmul

# Scale of an empty sum. It is below any other scale, and finite, so that the difference of two is not NaN.
NO_SCALE = -1e30


def append_ones(v: Float[Array, "S V"]) -> Float[Array, "S W"]:
    """Appends a column of ones to the values. It accumulates the sum of weights."""
    return jnp.concatenate([v, jnp.ones_like(v[:, :1])], axis=1)


def normalise(y: Float[Array, "T W"]) -> Float[Array, "T V"]:
    """Divides the first V columns by the last, the sum of weights; see `divide_by_total`."""
    return divide_by_total(y[:, :-1], y[:, -1:])


def divide_by_total(y: Float[Array, "T V"], total: Float[Array, "T 1"]) -> Float[Array, "T V"]:
    """Returns y / total; zero, with zero gradient, if |total| is below 2e-31 (in float32).

    Args:
      y: weighted sums of values [T V].
      total: sums of weights [T 1].
    """
    # In the gradient, the inverse of a smaller total overflows. The factor 2^24 is headroom for what it multiplies.
    least = jnp.finfo(total.dtype).tiny * 2**24
    return divide(y, jnp.where(jnp.abs(total) < least, jnp.zeros_like(total), total))


def sum_outer_products(k: Float[Array, "S M"], v: Float[Array, "S V"]) -> Float[Array, "M V"]:
    """Returns Σ_j ψ(k_j)ᵀ v_j, the sum over all keys as one matrix."""
    return matmul(k.T, v)


class Visibility(NamedTuple):
    """What the queries of a block see, and what enters the state after it.

    Each field is boolean, or holds weights that are multiplied in.
    """

    pairs: Shaped[ArrayOrNumpy, "T T"]
    """Whether token t sees token j of the same block [T T]."""
    state_visible: Shaped[ArrayOrNumpy, " T"]
    """Whether token t sees the state before the block [T]."""
    enters_state: Shaped[ArrayOrNumpy, " T"]
    """Whether token t is part of the state after the block [T]."""
    state_survives: Shaped[ArrayOrNumpy, ""]
    """Whether the old state is part of the new one, a scalar."""


def relative_decay(scale: Float[Array, " S"], allowed: Bool[ArrayOrNumpy, "T S"]) -> Float[Array, "T S"]:
    """Returns e^{scale_j} divided by the largest that each query may see; zero for pairs that are not allowed.

    Args:
      scale: scale of each key [S].
      allowed: pairs that may meet [T S].

    Returns:
      Factors in 0 … 1, [T S].
    """
    peak = jnp.max(jnp.where(allowed, scale[None, :], NO_SCALE), axis=1, keepdims=True, initial=NO_SCALE)
    return _faded(allowed, scale[None, :] - peak)


def relative_visibility(
    scale: Float[Array, " T"], peak: Float[Array, ""], visible: Visibility
) -> tuple[Visibility, Float[Array, ""]]:
    """Turns the visibility of scaled keys into weights relative to the largest scale.

    The features of a key are e^{scale} times the rows given. Those in the state are e^{peak} times what the state
    holds. Weights are relative to the largest scale that a query sees, and the new state to the largest that it holds.
    They never depend on the scale of a later key.

    Args:
      scale: scale of each token of the block [T].
      peak: scale of the state before the block, a scalar.
      visible: boolean visibility of the block.

    Returns:
      The visibility as weights, and the scale of the state after the block.
    """
    own = jnp.max(jnp.where(visible.pairs, scale[None, :], NO_SCALE), axis=1, initial=NO_SCALE)
    top = jnp.maximum(own, jnp.where(visible.state_visible, peak, NO_SCALE))
    new = jnp.max(jnp.where(visible.enters_state, scale, NO_SCALE), initial=NO_SCALE)
    after = jnp.maximum(new, jnp.where(visible.state_survives, peak, NO_SCALE))
    return Visibility(
        _faded(visible.pairs, scale[None, :] - top[:, None]),
        _faded(visible.state_visible, peak - top),
        _faded(visible.enters_state, scale - after),
        _faded(visible.state_survives, peak - after),
    ), after


def _faded(allowed, logarithm):
    """Returns exp(logarithm) for allowed entries, and zero for the others."""
    # Mask before the exponential: an entry that is not allowed may be larger than the peak, and overflow.
    return jnp.exp(logarithm if _all(allowed) else jnp.where(allowed, logarithm, -jnp.inf))


def _all(weights: Shaped[ArrayOrNumpy, "..."]) -> bool:
    """Returns whether all weights are known to be True at trace time."""
    return isinstance(weights, np.ndarray) and weights.dtype == bool and bool(weights.all())


def chunk(
    state: Float[Array, "M V"],
    q: Float[Array, "T M"],
    k: Float[Array, "T M"],
    v: Float[Array, "T V"],
    pairs: Shaped[ArrayOrNumpy, "T T"],
    state_visible: Shaped[ArrayOrNumpy, " T"],
    enters_state: Shaped[ArrayOrNumpy, " T"],
    state_survives: Shaped[ArrayOrNumpy, ""],
    products: Float[Array, "T T"] | None = None,
) -> tuple[Float[Array, "T V"], Float[Array, "M V"]]:
    """Computes one block of the causal form: y_t = q_t S + Σ_{j ≤ t} (q_t·k_j) v_j, and the state after it.

    A block of one token is the recurrent form, and one of all T tokens the parallel form. Sums are taken in the dtype
    of the state.

    Args:
      state: S before the block [M V].
      q: queries in feature space [T M].
      k: keys in feature space [T M].
      v: values [T V].
      pairs: `Visibility.pairs` [T T].
      state_visible: `Visibility.state_visible` [T].
      enters_state: `Visibility.enters_state` [T].
      state_survives: `Visibility.state_survives`, a scalar.
      products: the products q_t·k_j [T T] if they are known, else None.

    Returns:
      The outputs y [T V] and the state after the block [M V].
    """
    dtype = state.dtype
    q, k, v = q.astype(dtype), k.astype(dtype), v.astype(dtype)
    products = matmul(q, k.T) if products is None else products.astype(dtype)
    y = matmul(apply_weights(products, pairs), v) + apply_weights(matmul(q, state), state_visible[:, None])
    return y, apply_weights(state, state_survives) + sum_outer_products(apply_weights(k, enters_state[:, None]), v)


def apply_weights(x: Float[Array, "..."], weights: Shaped[ArrayOrNumpy, "..."]) -> Float[Array, "..."]:
    """Multiplies x by weights that broadcast; for boolean weights, sets x to zero where they are False."""
    if _all(weights):
        return x
    return jnp.where(weights, x, 0) if weights.dtype == bool else x * weights
