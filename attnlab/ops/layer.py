"""Norms, activations and dropout."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from attnlab.ops.precision import accumulation_dtype


def layer_norm(x: Float[Array, "... D"], scale: Float[Array, " D"], shift: Float[Array, " D"], epsilon: float = 1e-6):
    """(x − mean) / √(variance + ε) · scale + shift, over features (Ba et al. 2016).

    In float32 at least, but for the shift, which is added in the precision of x.
    """
    dtype = accumulation_dtype(x.dtype)
    centred = x.astype(dtype) - jnp.mean(x.astype(dtype), axis=-1, keepdims=True)
    variance = jnp.mean(centred * centred, axis=-1, keepdims=True)
    return _scaled(centred * jax.lax.rsqrt(variance + epsilon), scale, x.dtype) + _like(shift, x)


def rms_norm(x: Float[Array, "... D"], scale: Float[Array, " D"], epsilon: float = 1e-6):
    """x / √(mean x² + ε) · scale: no mean removed (Zhang and Sennrich 2019), in float32 at least."""
    wider = x.astype(accumulation_dtype(x.dtype))
    return _scaled(wider * jax.lax.rsqrt(jnp.mean(wider * wider, axis=-1, keepdims=True) + epsilon), scale, x.dtype)


def _like(parameter: Float[Array, " D"], x: Float[Array, "... D"]) -> Float[Array, "... D"]:
    return parameter.astype(x.dtype).reshape((1,) * (x.ndim - 1) + parameter.shape)


def _scaled(x, scale, dtype):
    return (x * _like(scale, x)).astype(dtype)


def l2_normalize(x: Float[Array, "T K"], epsilon: float = 0.0) -> Float[Array, "T K"]:
    """x / √(‖x‖² + ε) for every row: of norm one, but for ε. Zero stays zero, with a finite gradient.

    Where the root is below 1e-12 (only without ε), x · 1e12. Squares are taken in the precision of x: a row whose
    square overflows (norms from 1.8e19 on in float32, from 256 on in float16) becomes zero.
    """
    # The floor is on the square, and no lower: the slope of its root is 5e35 there, and has to fit into float32.
    return x * jax.lax.rsqrt(jnp.maximum(jnp.sum(x * x, axis=1, keepdims=True) + epsilon, 1e-24))


def relu(x: Float[Array, "..."]) -> Float[Array, "..."]:
    """max(x, 0)."""
    return jax.nn.relu(x)


def gelu(x: Float[Array, "..."], approximate: bool = False) -> Float[Array, "..."]:
    """x Φ(x) by erf, or its approximation 0.5 x (1 + tanh(√(2/π)(x + 0.044715 x³))) (Hendrycks and Gimpel 2016)."""
    return jax.nn.gelu(x, approximate=approximate)


def gelu_tanh(x: Float[Array, "..."]) -> Float[Array, "..."]:
    """The approximation of `gelu` by tanh, within 5e-4 of it."""
    return gelu(x, approximate=True)


def silu(x: Float[Array, "..."]) -> Float[Array, "..."]:
    """x · sigmoid(x), the gate of SwiGLU (Shazeer 2020)."""
    return jax.nn.silu(x)


ACTIVATIONS = {"relu": relu, "gelu": gelu, "gelu_tanh": gelu_tanh, "silu": silu}


def dropout(x: Float[Array, "..."], rate: float, key: PRNGKeyArray | None) -> Float[Array, "..."]:
    """Each element zero with probability `rate` (to 2⁻¹⁶), else divided by 1 − rate; x itself where `key` is None."""
    if key is None or rate == 0:
        return x
    # On a CPU drawing the bits is most of the cost, and a word holds enough for two elements.
    words = jax.random.bits(key, (-(-x.size // 2),))
    bits = jax.lax.bitcast_convert_type(words, jnp.uint16).reshape(-1)[: x.size].reshape(x.shape)
    threshold = min(max(1, round(rate * 2**16)), 2**16 - 1)
    return jnp.where(bits >= jnp.uint16(threshold), x / (1 - threshold / 2**16), jnp.zeros_like(x))
