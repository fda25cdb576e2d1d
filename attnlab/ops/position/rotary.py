"""Rotations of queries and keys by their positions."""

from __future__ import annotations

import math

import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from attnlab.ops.mask import ArrayOrNumpy
from attnlab.ops.position.absolute import frequencies, grid
from attnlab.ops.position.scaling import RotaryScaling
from attnlab.ops.precision import accumulation_dtype

XPOS_GAMMA = 0.4  # γ of xPos: its smallest decay is γ / (1 + γ)


def rotary(
    x: Float[Array, "T K"],
    i: Int[ArrayOrNumpy, " T"],
    base: float = 10000.0,
    halves: bool = False,
    size: int | None = None,
    scaling: RotaryScaling | None = None,
) -> Float[Array, "T K"]:
    """Rotates each pair (x[2n], x[2n+1]) by the angle i · base^{−2n/K} (Su et al. 2021, eq. 34).

    Norms are kept, and rotary(q, a)·rotary(k, b) depends on a−b only. Computed in float32 at least.

    Args:
      x: queries or keys [T K], K even.
      i: positions [T].
      base: base of the frequencies. Defaults to 10,000.
      halves: rotate the pairs (x[n], x[n + K/2]) instead. Defaults to False.
      size: rotate only the first `size` components, as a vector of that width (GPT-J). Defaults to K.
      scaling: a change of the frequencies, which may also multiply rotated components. Defaults to None.

    Returns:
      The rotated rows [T K], in the dtype of x.

    Raises:
      ValueError: if the number of rotated components is odd.
    """
    if size is not None and size < x.shape[1]:
        turned = rotary(x[:, :size], i, base, halves, scaling=scaling)
        return jnp.concatenate([turned, x[:, size:]], axis=1)
    dtype = accumulation_dtype(x.dtype)
    rate = frequencies(x.shape[1], base, dtype)
    rate = rate if scaling is None else scaling.scale(rate, base)
    angle = jnp.asarray(i).astype(dtype)[:, None] * rate[None, :]
    cos, sin = jnp.cos(angle), jnp.sin(angle)
    x_ = x.astype(dtype) if scaling is None else x.astype(dtype) * scaling.multiplier
    one, other = jnp.split(x_, 2, axis=1) if halves else (x_[:, 0::2], x_[:, 1::2])
    turned = one * cos - other * sin, one * sin + other * cos
    joined = jnp.concatenate(turned, axis=1) if halves else jnp.stack(turned, axis=-1)
    return joined.reshape(x.shape).astype(x.dtype)


def rotary_2d(
    x: Float[Array, "T K"], i: Int[ArrayOrNumpy, " T"], columns: int, base: float = 10000.0
) -> Float[Array, "T K"]:
    """Rotary positions on a grid: the first half of the features rotates by the row, the second by the column.

    Args:
      x: queries or keys [T K], K divisible by 4.
      i: positions [T], read row by row.
      columns: number of columns of the grid.
      base: base of the frequencies. Defaults to 10,000.

    Returns:
      The rotated rows [T K], in the dtype of x.
    """
    half = x.shape[1] // 2
    row, column = grid(i, columns)
    return jnp.concatenate([rotary(x[:, :half], row, base), rotary(x[:, half:], column, base)], axis=1)


def xpos(
    x: Float[Array, "T K"], i: Int[ArrayOrNumpy, " T"], sign: int, base: float = 10000.0, scale: float = 512.0
) -> Float[Array, "T K"]:
    """xPos: `rotary`, with each pair n scaled by ζ_n^{sign · i / scale}, ζ_n = (2n/K + γ) / (1 + γ).

    With sign 1 for queries and −1 for keys, products depend on i−j only and decay by ζ_n^{(i−j) / scale}. The factors
    of queries and keys by themselves leave the range of a dtype as i grows. So the result is NaN from position
    `xpos_max_length` on.

    Args:
      x: queries or keys [T K], K even.
      i: positions [T].
      sign: 1 for queries, −1 for keys.
      base: base of the frequencies. Defaults to 10,000.
      scale: number of positions over which the product of pair n decays by ζ_n. Defaults to 512.

    Returns:
      The scaled and rotated rows [T K], in the dtype of x.

    Raises:
      ValueError: if K is odd.

    Source: Sun et al. 2022, section 4; γ is `XPOS_GAMMA`.
    """
    dtype = accumulation_dtype(x.dtype)
    zeta = (jnp.arange(0, x.shape[1], 2, dtype=dtype) / x.shape[1] + XPOS_GAMMA) / (1 + XPOS_GAMMA)
    power = jnp.asarray(i).astype(dtype)[:, None] * (sign / scale)
    factor = jnp.repeat(jnp.exp(power * jnp.log(zeta)[None, :]), 2, axis=1)
    inside = (jnp.asarray(i) < xpos_max_length(x.dtype, scale))[:, None]
    # Multiply before the cast to the dtype of x. A product in half precision would round twice.
    turned = rotary(x.astype(dtype), i, base) * jnp.where(inside, factor, jnp.nan)
    return turned.astype(x.dtype)


def xpos_max_length(dtype, scale: float = 512.0) -> int:
    """Returns how many positions xPos supports in a dtype.

    Its factors stay within the square root of the dtype's range. For the default scale that is about 18,000 positions
    in float32 and bfloat16, and 2,300 in float16.
    """
    return int(scale * jnp.finfo(dtype).maxexp / 2 / math.log2((1 + XPOS_GAMMA) / XPOS_GAMMA))
