"""The precision in which sums are accumulated."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float


def accumulation_dtype(dtype) -> jnp.dtype:
    """Returns the dtype in which to accumulate values of `dtype`.

    Float32 for half precision and float32, float64 for float64, the default float for integers.
    """
    if not jnp.issubdtype(dtype, jnp.floating):
        return jnp.dtype(jnp.result_type(float))
    return jnp.dtype(dtype) if jnp.finfo(dtype).bits >= 32 else jnp.dtype(jnp.float32)


def matmul(a: Float[Array, "T K"], b: Float[Array, "K V"]) -> Float[Array, "T V"]:
    """Returns the matrix product a b, accumulated and returned in `accumulation_dtype` precision."""
    return jnp.matmul(a, b, preferred_element_type=accumulation_dtype(a.dtype))


@jax.custom_jvp
def divide(a: Float[Array, "T V"], b: Float[Array, "T 1"]) -> Float[Array, "T V"]:
    """Returns a / b; zero, with zero gradient, where b is 0."""
    safe = jnp.where(b == 0, jnp.ones_like(b), b)
    return jnp.where(b == 0, jnp.zeros_like(a), a / safe)


@divide.defjvp
def _(primals, tangents):
    """The tangent (da − (a/b) db) / b. The usual form with 1/b² overflows for b below 1e-19 in float32."""
    (a, b), (da, db) = primals, tangents
    y = divide(a, b)
    return y, divide(da - y * db, b)


def weighted_sum(weights: Float[Array, "T S"], v: Float[Array, "S V"]) -> Float[Array, "T V"]:
    """Returns `weights` v in the dtype of v, accumulated in `accumulation_dtype` precision.

    Args:
      weights: attention weights [T S], cast to the dtype of v.
      v: values [S V].

    Returns:
      Weighted sums of the values [T V].
    """
    return matmul(weights.astype(v.dtype), v).astype(v.dtype)
