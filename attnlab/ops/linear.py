"""Linear attention: a sum over keys that any query can read.

With φ(q) and ψ(k) given, the weight of key j for query t is φ(q_t)·ψ(k_j), over its sum where normalised. A column
of ones beside v carries that sum along, so that numerator and denominator are one product (Katharopoulos et al. 2020,
eq. 5 and 18-20).
"""

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from attnlab.ops.mask import Places
from attnlab.ops.precision import divide, product


def with_ones(v: Float[Array, "S V"]) -> Float[Array, "S W"]:
    """V with a column of ones, in which the weights sum up."""
    return jnp.concatenate([v, jnp.ones_like(v[:, :1])], axis=1)


def normalise(y: Float[Array, "T W"]) -> Float[Array, "T V"]:
    """The values over the sum of weights in the last column; zero where that sum is zero."""
    return divide(y[:, :-1], y[:, -1:])


def gather(k: Float[Array, "S M"], v: Float[Array, "S V"]) -> Float[Array, "M V"]:
    """Σ_j ψ(k_j)ᵀ v_j: all keys in one matrix."""
    return product(k.T, v)


def chunk(
    state: Float[Array, "M V"],
    q: Float[Array, "T M"],
    k: Float[Array, "T M"],
    v: Float[Array, "T V"],
    pairs: Bool[Places, "T T"],
    sees: Bool[Places, " T"],
    stays: Bool[Places, " T"],
    carries: Bool[Places, ""],
) -> tuple[Float[Array, "T V"], Float[Array, "M V"]]:
    """One block of the causal form: y_t = q_t S + Σ_{j ≤ t} (q_t·k_j) v_j, and the state after it.

    `pairs` says which tokens of the block see each other, `sees` which see the state, `stays` which enter the new
    state, `carries` whether the old state is part of it. A block of one token is the recurrent form, one of T the
    parallel form. Sums are taken in float32 at least.
    """
    dtype = state.dtype
    weights = jnp.where(pairs, product(q, k.T).astype(dtype), 0)
    past = jnp.where(sees[:, None], product(q.astype(dtype), state), 0)
    y = past + product(weights, v.astype(dtype))
    new = gather(jnp.where(stays[:, None], k, 0).astype(dtype), v.astype(dtype))
    return y, jnp.where(carries, state, jnp.zeros_like(state)) + new
