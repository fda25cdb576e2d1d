"""In which precision sums are taken."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float


def accumulation_dtype(dtype) -> jnp.dtype:
    """The dtype to accumulate in: float32 at least, float64 for float64, the default float for integers."""
    if not jnp.issubdtype(dtype, jnp.floating):
        return jnp.dtype(jnp.result_type(float))
    return jnp.dtype(dtype) if jnp.finfo(dtype).bits >= 32 else jnp.dtype(jnp.float32)


def matmul(a: Float[Array, "T K"], b: Float[Array, "K V"]) -> Float[Array, "T V"]:
    """The matrix product a b, summed and answered in `accumulation_dtype` precision."""
    return jnp.matmul(a, b, preferred_element_type=accumulation_dtype(a.dtype))


@jax.custom_jvp
def divide(a: Float[Array, "T V"], b: Float[Array, "T 1"]) -> Float[Array, "T V"]:
    """a / b, and zero with zero gradient where b is 0."""
    safe = jnp.where(b == 0, jnp.ones_like(b), b)
    return jnp.where(b == 0, jnp.zeros_like(a), a / safe)


@divide.defjvp
def _(primals, tangents):
    """d(a/b) = (da − (a/b) db) / b: the usual 1/b² overflows for b below 1e-19 in float32."""
    (a, b), (da, db) = primals, tangents
    y = divide(a, b)
    return y, divide(da - y * db, b)


def weighted_sum(weights: Float[Array, "T S"], v: Float[Array, "S V"]) -> Float[Array, "T V"]:
    """The values mixed by the weights, in the dtype of the values, summed in `accumulation_dtype` precision."""
    return matmul(weights.astype(v.dtype), v).astype(v.dtype)
