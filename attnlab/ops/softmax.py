"""Softmax over the keys that a mask allows."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from attnlab.ops.precision import divide, wide


def masked_softmax(scores: Float[Array, "T S"], allowed: Bool[Array, "T S"]) -> Float[Array, "T S"]:
    """exp(s_tj) / Σ_n exp(s_tn) over the allowed j; a row with none is zero, with zero gradient.

    The mask acts before the exponential, so what it forbids takes no share of the denominator. Computed and
    answered in float32 at least: bfloat16 sums lose the tail.
    """
    scores = scores.astype(wide(scores.dtype))
    peak = jnp.max(scores, axis=-1, keepdims=True, where=allowed, initial=-jnp.inf)
    peak = jax.lax.stop_gradient(jnp.where(jnp.isfinite(peak), peak, jnp.zeros_like(peak)))
    # Inner where: exp of a forbidden score may overflow, and its gradient would be 0·inf.
    share = jnp.where(allowed, jnp.exp(jnp.where(allowed, scores - peak, jnp.zeros_like(scores))), 0)
    return divide(share, share.sum(axis=-1, keepdims=True))
