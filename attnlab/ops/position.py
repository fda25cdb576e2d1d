"""Positions as numbers: the sinusoid and the rotation."""

import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from attnlab.ops.precision import wide


def frequencies(D: int, base: float, dtype) -> Float[Array, " half"]:
    """base^{−2i/D} for i = 0 … D/2−1, in radians a position."""
    return jnp.asarray(base, dtype) ** (-jnp.arange(0, D, 2, dtype=dtype) / D)


def sinusoidal(i: Int[Array, " T"], D: int, dtype=jnp.float32) -> Float[Array, "T D"]:
    """p_t[2i] = sin(t / 10000^{2i/D}), p_t[2i+1] = cos of the same (Vaswani et al. 2017, section 3.5).

    p_a·p_b depends on a−b alone. D is even. The angle is taken in float32 at least.
    """
    angle = i.astype(wide(dtype))[:, None] * frequencies(D, 10000.0, wide(dtype))[None, :]
    return jnp.stack([jnp.sin(angle), jnp.cos(angle)], axis=-1).reshape(i.shape[0], D).astype(dtype)


def rotary(x: Float[Array, "T K"], i: Int[Array, " T"], base: float = 10000.0) -> Float[Array, "T K"]:
    """Turn each pair (x[2n], x[2n+1]) by the angle i · base^{−2n/K} (Su et al. 2021, eq. 34).

    Norms are kept, and rotary(q, a)·rotary(k, b) depends on a−b alone. K is even.
    """
    dtype = wide(x.dtype)
    angle = i.astype(dtype)[:, None] * frequencies(x.shape[1], base, dtype)[None, :]
    cos, sin = jnp.cos(angle), jnp.sin(angle)
    even, odd = x[:, 0::2].astype(dtype), x[:, 1::2].astype(dtype)
    turned = jnp.stack([even * cos - odd * sin, even * sin + odd * cos], axis=-1)
    return turned.reshape(x.shape).astype(x.dtype)
