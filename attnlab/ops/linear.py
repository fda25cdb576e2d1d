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
from attnlab.ops.precision import divide, product

# The scale of nothing at all: below any other, and finite, so that a difference of two is no NaN.
NONE = -1e30


def with_ones(v: Float[Array, "S V"]) -> Float[Array, "S W"]:
    """The values v with a column of ones, in which the weights sum up."""
    return jnp.concatenate([v, jnp.ones_like(v[:, :1])], axis=1)


def normalise(y: Float[Array, "T W"]) -> Float[Array, "T V"]:
    """The values over the sum of weights in the last column, as `share` takes it."""
    return share(y[:, :-1], y[:, -1:])


def share(y: Float[Array, "T V"], total: Float[Array, "T 1"]) -> Float[Array, "T V"]:
    """y / total; zero, with zero gradient, where the total is zero or nearly so (below 2e-31 in float32)."""
    # The inverse of a smaller one overflows in a gradient: 2^24 is room for what it is multiplied with there.
    least = jnp.finfo(total.dtype).tiny * 2**24
    return divide(y, jnp.where(jnp.abs(total) < least, jnp.zeros_like(total), total))


def gather(k: Float[Array, "S M"], v: Float[Array, "S V"]) -> Float[Array, "M V"]:
    """Σ_j ψ(k_j)ᵀ v_j: all keys in one matrix."""
    return product(k.T, v)


class Reach(NamedTuple):
    """How the tokens of a block, and the state before it, reach its queries and the state after it.

    `pairs`: token t sees token j. `sees`: it sees the state. `stays`: it enters the new state. `carries`: the old
    state is part of it. Yes or no, or weights.
    """

    pairs: Shaped[Places, "T T"]
    sees: Shaped[Places, " T"]
    stays: Shaped[Places, " T"]
    carries: Shaped[Places, ""]


def fade(scale: Float[Array, " S"], allowed: Bool[Places, "T S"]) -> Float[Array, "T S"]:
    """e^{scale_j}, over the largest that each query is allowed; zero for what it is not."""
    peak = jnp.max(jnp.where(allowed, scale[None, :], NONE), axis=1, keepdims=True, initial=NONE)
    return _faded(allowed, scale[None, :] - peak)


def relative(scale: Float[Array, " T"], peak: Float[Array, ""], reach: Reach) -> tuple[Reach, Float[Array, ""]]:
    """The reach of keys whose features are e^{scale} times what is given, and the scale of the state after them.

    The features in the state are e^{peak} times what it holds. Weights are relative to the largest scale that a query
    sees, and the new state to the largest that it holds; never to that of a later key.
    """
    own = jnp.max(jnp.where(reach.pairs, scale[None, :], NONE), axis=1, initial=NONE)
    seen = jnp.maximum(own, jnp.where(reach.sees, peak, NONE))
    new = jnp.max(jnp.where(reach.stays, scale, NONE), initial=NONE)
    after = jnp.maximum(new, jnp.where(reach.carries, peak, NONE))
    return Reach(
        _faded(reach.pairs, scale[None, :] - seen[:, None]),
        _faded(reach.sees, peak - seen),
        _faded(reach.stays, scale - after),
        _faded(reach.carries, peak - after),
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

    `pairs` to `carries` are a `Reach`; `met` is q_t·k_j, where that is known. A block of one token is the recurrent
    form, one of T the parallel form. Sums are taken in float32 at least.
    """
    dtype = state.dtype
    q, k, v = q.astype(dtype), k.astype(dtype), v.astype(dtype)
    met = product(q, k.T) if met is None else met.astype(dtype)
    y = product(weighed(met, pairs), v) + weighed(product(q, state), sees[:, None])
    return y, weighed(state, carries) + gather(weighed(k, stays[:, None]), v)


def weighed(x: Float[Array, "..."], weights: Shaped[Places, "..."]) -> Float[Array, "..."]:
    """What is weighed by weights that broadcast; by yes or no, zero where no."""
    if _all(weights):
        return x
    return jnp.where(weights, x, 0) if weights.dtype == bool else x * weights
