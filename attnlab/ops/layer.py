"""Norms, activations and dropout."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from attnlab.ops.precision import accumulation_dtype


def layer_norm(x: Float[Array, "... D"], scale: Float[Array, " D"], shift: Float[Array, " D"], epsilon: float = 1e-6):
    """Layer normalization: (x − mean) / √(variance + ε) · scale + shift over the last axis (Ba et al. 2016).

    It is computed in float32 at least, except for the shift, which is added in the dtype of x.

    Args:
      x: inputs [… D].
      scale: factor per feature [D].
      shift: offset per feature [D].
      epsilon: ε, added to the variance. Defaults to 1e-6.

    Returns:
      Normalised inputs [… D], in the dtype of x.
    """
    dtype = accumulation_dtype(x.dtype)
    centred = x.astype(dtype) - jnp.mean(x.astype(dtype), axis=-1, keepdims=True)
    variance = jnp.mean(centred * centred, axis=-1, keepdims=True)
    return _scaled(centred * jax.lax.rsqrt(variance + epsilon), scale, x.dtype) + _like(shift, x)


def rms_norm(x: Float[Array, "... D"], scale: Float[Array, " D"], epsilon: float = 1e-6):
    """RMS normalization: x / √(mean x² + ε) · scale over the last axis (Zhang and Sennrich 2019).

    Unlike `layer_norm`, it does not subtract the mean. It is computed in float32 at least.

    Args:
      x: inputs [… D].
      scale: factor per feature [D].
      epsilon: ε, added to the mean square. Defaults to 1e-6.

    Returns:
      Normalised inputs [… D], in the dtype of x.
    """
    wider = x.astype(accumulation_dtype(x.dtype))
    return _scaled(wider * jax.lax.rsqrt(jnp.mean(wider * wider, axis=-1, keepdims=True) + epsilon), scale, x.dtype)


def _like(parameter: Float[Array, " D"], x: Float[Array, "... D"]) -> Float[Array, "... D"]:
    """Casts a parameter to the dtype of x, with leading axes of size 1."""
    return parameter.astype(x.dtype).reshape((1,) * (x.ndim - 1) + parameter.shape)


def _scaled(x, scale, dtype):
    """Returns x · scale in a dtype."""
    return (x * _like(scale, x)).astype(dtype)


def l2_normalize(x: Float[Array, "T K"], epsilon: float = 0.0) -> Float[Array, "T K"]:
    """Divides each row by its norm: x / √(‖x‖² + ε).

    A row of zeros stays zero, with a finite gradient. If the root is below 1e-12 (possible only without ε), the row is
    multiplied by 1e12 instead. Squares are computed in the dtype of x. A row whose square overflows becomes zero: norms
    from 1.8e19 on in float32, from 256 on in float16.

    Args:
      x: rows [T K].
      epsilon: ε, added to the squared norm. Defaults to 0.

    Returns:
      Rows of norm one, up to ε [T K].
    """
    # The floor is on the square. It cannot be lower: the slope of the inverse root, 5e35 there, must fit into float32.
    return x * jax.lax.rsqrt(jnp.maximum(jnp.sum(x * x, axis=1, keepdims=True) + epsilon, 1e-24))


def relu(x: Float[Array, "..."]) -> Float[Array, "..."]:
    """Returns max(x, 0)."""
    return jax.nn.relu(x)


def gelu(x: Float[Array, "..."], approximate: bool = False) -> Float[Array, "..."]:
    """Gaussian error linear unit: x Φ(x), by the error function (Hendrycks and Gimpel 2016).

    Args:
      x: inputs, of any shape.
      approximate: whether to use 0.5 x (1 + tanh(√(2/π)(x + 0.044715 x³))) instead. Defaults to False.
    """
    return jax.nn.gelu(x, approximate=approximate)


def gelu_tanh(x: Float[Array, "..."]) -> Float[Array, "..."]:
    """Returns `gelu` with its tanh approximation, which is within 5e-4 of it."""
    return gelu(x, approximate=True)


def silu(x: Float[Array, "..."]) -> Float[Array, "..."]:
    """Returns x · sigmoid(x), the gate of SwiGLU (Shazeer 2020)."""
    return jax.nn.silu(x)


ACTIVATIONS = {"relu": relu, "gelu": gelu, "gelu_tanh": gelu_tanh, "silu": silu}
# Activations of a hidden layer that is multiplied by a second linear map of the input (Shazeer 2020, eq. 5 and 6).
GATED_ACTIVATIONS = {"glu": jax.nn.sigmoid, "reglu": relu, "geglu": gelu, "swiglu": silu}


def dropout(x: Float[Array, "..."], rate: float, key: PRNGKeyArray | None) -> Float[Array, "..."]:
    """Sets each element to zero with probability `rate`, and divides the others by 1 − rate.

    Args:
      x: inputs, of any shape.
      rate: probability, rounded to a multiple of 2⁻¹⁶.
      key: a random key. None means no dropout: x is returned unchanged.
    """
    if key is None or rate == 0:
        return x
    # On a CPU most of the cost is drawing random bits. So each 32-bit word serves two elements.
    words = jax.random.bits(key, (-(-x.size // 2),))
    bits = jax.lax.bitcast_convert_type(words, jnp.uint16).reshape(-1)[: x.size].reshape(x.shape)
    threshold = min(max(1, round(rate * 2**16)), 2**16 - 1)
    return jnp.where(bits >= jnp.uint16(threshold), x / (1 - threshold / 2**16), jnp.zeros_like(x))


def split_keys(key: PRNGKeyArray | None, count: int) -> list[PRNGKeyArray | None]:
    """Splits a random key into a list of `count` keys. None, which means no dropout, becomes a list of None."""
    return [None] * count if key is None else list(jax.random.split(key, count))
