"""Softmax over the keys that a mask allows."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from attnlab.ops.precision import accumulation_dtype


@jax.custom_jvp
def masked_softmax(scores: Float[Array, "T S"], allowed: Bool[Array, "T S"]) -> Float[Array, "T S"]:
    """exp(s_tj) / Σ_n exp(s_tn) over the allowed j; a row with none is zero, with zero gradient.

    The mask acts before the exponential, so what it forbids takes no share of the denominator. Computed and
    answered in float32 at least: bfloat16 sums lose the tail.
    """
    scores = jnp.where(allowed, scores.astype(accumulation_dtype(scores.dtype)), -jnp.inf)
    peak = jnp.max(scores, axis=-1, keepdims=True, initial=-jnp.inf)
    share = jnp.exp(scores - jnp.where(jnp.isneginf(peak), jnp.zeros_like(peak), peak))
    total = share.sum(axis=-1, keepdims=True)
    # The peak's own share is 1, so a total below that means that no key is allowed.
    return share * jnp.where(total == 0, jnp.zeros_like(total), 1 / jnp.maximum(total, 1))


@masked_softmax.defjvp
def _(primals, tangents):
    """dw = w (ds − Σ_n w_n ds_n); no tangent of a forbidden score gets in, NaN or not."""
    scores, allowed = primals
    weights = masked_softmax(scores, allowed)
    change = jnp.where(allowed, tangents[0].astype(weights.dtype), jnp.zeros_like(weights))
    return weights, weights * (change - jnp.sum(weights * change, axis=-1, keepdims=True))
