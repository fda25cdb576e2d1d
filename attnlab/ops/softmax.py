"""Softmax over the keys that a mask allows."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from attnlab.ops.precision import accumulation_dtype


@jax.custom_jvp
def masked_softmax(scores: Float[Array, "T S"], allowed: Bool[Array, "T S"]) -> Float[Array, "T S"]:
    """Returns exp(s_tj) / Σ_n exp(s_tn) over the allowed j; zero elsewhere.

    A row without any allowed key is zero, with zero gradient. The mask is applied before the exponential, so masked
    scores have no share in the denominator and may be NaN or infinite. Everything is computed in float32 at least,
    because sums in bfloat16 lose the small terms.

    Args:
      scores: scores [T S].
      allowed: boolean mask [T S].

    Returns:
      Attention weights [T S], in float32 at least.
    """
    scores = jnp.where(allowed, scores.astype(accumulation_dtype(scores.dtype)), -jnp.inf)
    peak = jnp.max(scores, axis=-1, keepdims=True, initial=-jnp.inf)
    share = jnp.exp(scores - jnp.where(jnp.isneginf(peak), jnp.zeros_like(peak), peak))
    total = share.sum(axis=-1, keepdims=True)
    # The largest allowed score contributes 1 to the total. A total below 1 means that no key is allowed.
    return share * jnp.where(total == 0, jnp.zeros_like(total), 1 / jnp.maximum(total, 1))


@masked_softmax.defjvp
def _(primals, tangents):
    """The tangent dw = w (ds − Σ_n w_n ds_n). Tangents of masked scores are dropped, even if they are NaN."""
    scores, allowed = primals
    weights = masked_softmax(scores, allowed)
    change = jnp.where(allowed, tangents[0].astype(weights.dtype), jnp.zeros_like(weights))
    return weights, weights * (change - jnp.sum(weights * change, axis=-1, keepdims=True))
