"""Linear attention: a sum over keys that any query can read.

With φ(q) and ψ(k) given, the weight of key j for query t is φ(q_t)·ψ(k_j), over its sum where normalised. A column
of ones beside v carries that sum along, so that numerator and denominator are one product (Katharopoulos et al. 2020,
eq. 5 and 18-20).

Where ψ(k_j) is e^{scale_j} times a row that is given, weights are taken relative to the largest scale that a query
sees: a common factor, which the normalised form does not know.
"""

from __future__ import annotations

from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Shaped

from attnlab.ops.mask import Places
from attnlab.ops.precision import divide, matmul

# The scale of nothing at all: below any other, and finite, so that a difference of two is no NaN.
NO_SCALE = -1e30


def append_ones(v: Float[Array, "S V"]) -> Float[Array, "S W"]:
    """The values v with a column of ones, in which the weights sum up."""
    return jnp.concatenate([v, jnp.ones_like(v[:, :1])], axis=1)


def normalise(y: Float[Array, "T W"]) -> Float[Array, "T V"]:
    """The values over the sum of weights in the last column, as `divide_by_total` takes it."""
    return divide_by_total(y[:, :-1], y[:, -1:])


def divide_by_total(y: Float[Array, "T V"], total: Float[Array, "T 1"]) -> Float[Array, "T V"]:
    """y / total; zero, with zero gradient, where the total is zero or nearly so (below 2e-31 in float32)."""
    # The inverse of a smaller one overflows in a gradient: 2^24 is room for what it is multiplied with there.
    least = jnp.finfo(total.dtype).tiny * 2**24
    return divide(y, jnp.where(jnp.abs(total) < least, jnp.zeros_like(total), total))


def sum_outer_products(k: Float[Array, "S M"], v: Float[Array, "S V"]) -> Float[Array, "M V"]:
    """Σ_j ψ(k_j)ᵀ v_j: all keys in one matrix."""
    return matmul(k.T, v)


class Visibility(NamedTuple):
    """How the tokens of a block, and the state before it, reach its queries and the state after it.

    `pairs`: token t sees token j. `state_visible`: it sees the state. `enters_state`: it enters the new state.
    `state_survives`: the old state is part of it. Yes or no, or weights.
    """

    pairs: Shaped[Places, "T T"]
    state_visible: Shaped[Places, " T"]
    enters_state: Shaped[Places, " T"]
    state_survives: Shaped[Places, ""]


def relative_decay(scale: Float[Array, " S"], allowed: Bool[Places, "T S"]) -> Float[Array, "T S"]:
    """e^{scale_j}, over the largest that each query is allowed; zero for what it is not."""
    peak = jnp.max(jnp.where(allowed, scale[None, :], NO_SCALE), axis=1, keepdims=True, initial=NO_SCALE)
    return _faded(allowed, scale[None, :] - peak)


def relative_visibility(
    scale: Float[Array, " T"], peak: Float[Array, ""], reach: Visibility
) -> tuple[Visibility, Float[Array, ""]]:
    """The reach of keys whose features are e^{scale} times what is given, and the scale of the state after them.

    The features in the state are e^{peak} times what it holds. Weights are relative to the largest scale that a query
    sees, and the new state to the largest that it holds; never to that of a later key.
    """
    own = jnp.max(jnp.where(reach.pairs, scale[None, :], NO_SCALE), axis=1, initial=NO_SCALE)
    seen = jnp.maximum(own, jnp.where(reach.state_visible, peak, NO_SCALE))
    new = jnp.max(jnp.where(reach.enters_state, scale, NO_SCALE), initial=NO_SCALE)
    after = jnp.maximum(new, jnp.where(reach.state_survives, peak, NO_SCALE))
    return Visibility(
        _faded(reach.pairs, scale[None, :] - seen[:, None]),
        _faded(reach.state_visible, peak - seen),
        _faded(reach.enters_state, scale - after),
        _faded(reach.state_survives, peak - after),
    ), after


def _faded(allowed, logarithm):
    # Masked before the exponential: what is not allowed may be larger than what is, and overflow.
    return jnp.exp(logarithm if _all(allowed) else jnp.where(allowed, logarithm, -jnp.inf))


def _all(weights: Shaped[Places, "..."]) -> bool:
    """Whether it is known while tracing that nothing is left out."""
    return isinstance(weights, np.ndarray) and weights.dtype == bool and bool(weights.all())


def chunk(
    state: Float[Array, "M V"],
    q: Float[Array, "T M"],
    k: Float[Array, "T M"],
    v: Float[Array, "T V"],
    pairs: Shaped[Places, "T T"],
    sees: Shaped[Places, " T"],
    stays: Shaped[Places, " T"],
    carries: Shaped[Places, ""],
    met: Float[Array, "T T"] | None = None,
) -> tuple[Float[Array, "T V"], Float[Array, "M V"]]:
    """One block of the causal form: y_t = q_t S + Σ_{j ≤ t} (q_t·k_j) v_j, and the state after it.

    `pairs` to `state_survives` are a `Visibility`; `met` is q_t·k_j, where that is known. A block of one token is the
    recurrent form, one of T the parallel form. Sums are taken in float32 at least.
    """
    dtype = state.dtype
    q, k, v = q.astype(dtype), k.astype(dtype), v.astype(dtype)
    met = matmul(q, k.T) if met is None else met.astype(dtype)
    y = matmul(apply_weights(met, pairs), v) + apply_weights(matmul(q, state), sees[:, None])
    return y, apply_weights(state, carries) + sum_outer_products(apply_weights(k, stays[:, None]), v)


def apply_weights(x: Float[Array, "..."], weights: Shaped[Places, "..."]) -> Float[Array, "..."]:
    """What is weighed by weights that broadcast; by yes or no, zero where no."""
    if _all(weights):
        return x
    return jnp.where(weights, x, 0) if weights.dtype == bool else x * weights
