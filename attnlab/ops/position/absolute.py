"""Encodings of positions that are added to inputs: sinusoids, grids, and the path of a dynamical system.

A grid is an image read row by row: position i is in row i // columns and column i mod columns.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, Real

from attnlab.ops.mask import ArrayOrNumpy
from attnlab.ops.precision import accumulation_dtype


def frequencies(D: int, base: float, dtype) -> Float[Array, " half"]:
    """Returns the frequencies base^{−2i/D} for i = 0 … D/2−1, in radians per position.

    Args:
      D: width, an even number.
      base: base of the frequencies.
      dtype: dtype of the result.

    Raises:
      ValueError: if D is odd.
    """
    if D % 2:
        raise ValueError(f"expected an even width for rotary or sinusoidal positions, got {D}")
    return jnp.asarray(base, dtype) ** (-jnp.arange(0, D, 2, dtype=dtype) / D)


def sinusoidal(i: Real[ArrayOrNumpy, " T"], D: int, dtype=jnp.float32) -> Float[Array, "T D"]:
    """Sinusoidal positions: p_t[2i] = sin(t / 10000^{2i/D}), p_t[2i+1] = cos of the same angle.

    p_a·p_b depends on a−b only. Angles are computed in float32 at least.

    Args:
      i: positions [T]; need not be integers.
      D: width, an even number.
      dtype: dtype of the result. Defaults to float32.

    Returns:
      Encodings [T D].

    Raises:
      ValueError: if D is odd.

    Source: Vaswani et al. 2017, section 3.5.
    """
    angle = (
        jnp.asarray(i).astype(accumulation_dtype(dtype))[:, None]
        * frequencies(D, 10000.0, accumulation_dtype(dtype))[None, :]
    )
    return jnp.stack([jnp.sin(angle), jnp.cos(angle)], axis=-1).reshape(i.shape[0], D).astype(dtype)


def grid(i: Int[ArrayOrNumpy, " T"], columns: int) -> tuple[Int[Array, " T"], Int[Array, " T"]]:
    """Returns the row and the column of each position."""
    return jnp.asarray(i) // columns, jnp.asarray(i) % columns


def sinusoidal_2d(
    i: Int[ArrayOrNumpy, " T"], D: int, columns: int, dtype=jnp.float32, rows: int | None = None
) -> Float[Array, "T D"]:
    """Sinusoidal positions on a grid: the row in the first half of the features, the column in the second.

    Args:
      i: positions [T], read row by row.
      D: width, divisible by 4.
      columns: number of columns of the grid.
      dtype: dtype of the result. Defaults to float32.
      rows: number of rows of the grid. If given, rows and columns are `normalised`, as in DETR (Carion et al. 2020). If
        None (the default), they are counted from 0.

    Returns:
      Encodings [T D].
    """
    places = grid(i, columns)
    if rows is not None:
        places = [normalised(at, side) for at, side in zip(places, (rows, columns), strict=True)]
    return jnp.concatenate([sinusoidal(at, D // 2, dtype) for at in places], axis=1)


def normalised(at: Real[ArrayOrNumpy, " T"], side: int) -> Real[Array, " T"]:
    """Returns 2π (at + 1) / (side + 1e-6).

    Coordinates counted from 0 are thereby counted from 1, and those of a whole side span one turn.

    Args:
      at: coordinates [T], counted from 0.
      side: length of the side.
    """
    at = jnp.asarray(at)
    at = at if jnp.issubdtype(at.dtype, jnp.inexact) else at.astype(jnp.result_type(float))
    return (at + 1) * (2 * math.pi / (side + 1e-6))


def flow_path(flow: Callable, start: Float[Array, "..."], length: int, step: float) -> Float[Array, "length ..."]:
    """Returns p(0), p(step), … p((length−1)·step) of the system dp/dt = flow(t, p), p(0) = start.

    It takes one step of the classical fourth-order Runge-Kutta method between two points.

    Args:
      flow: the right-hand side, `(t, p) -> dp/dt`.
      start: p(0), of any shape.
      length: number of points.
      step: time between two points.

    Returns:
      The points, stacked along a new first axis of size `length`.
    """

    def advance(p, n):
        t = n.astype(p.dtype) * step
        one = flow(t, p)
        two = flow(t + step / 2, p + step / 2 * one)
        three = flow(t + step / 2, p + step / 2 * two)
        four = flow(t + step, p + step * three)
        return p + step / 6 * (one + 2 * two + 2 * three + four), p

    return jax.lax.scan(advance, start, jnp.arange(length, dtype=jnp.int32))[1]
