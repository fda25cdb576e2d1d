"""Functions of positions: sinusoids, rotations, slopes, buckets, distances, and the path of a dynamical system.

A grid is an image read row by row: position i is in row i // columns and column i mod columns.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, Real

from attnlab.ops.mask import Places
from attnlab.ops.precision import accumulation_dtype, matmul

XPOS_GAMMA = 0.4  # γ of xPos: its smallest decay is γ / (1 + γ)


def frequencies(D: int, base: float, dtype) -> Float[Array, " half"]:
    """Returns the frequencies base^{−2i/D} for i = 0 … D/2−1, in radians per position.

    Raises:
      ValueError: if D is odd.
    """
    if D % 2:
        raise ValueError(f"expected an even width for rotary or sinusoidal positions, got {D}")
    return jnp.asarray(base, dtype) ** (-jnp.arange(0, D, 2, dtype=dtype) / D)


def sinusoidal(i: Real[Places, " T"], D: int, dtype=jnp.float32) -> Float[Array, "T D"]:
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


def sinusoidal_2d(
    i: Int[Places, " T"], D: int, columns: int, dtype=jnp.float32, rows: int | None = None
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


def normalised(at: Real[Places, " T"], side: int) -> Real[Array, " T"]:
    """Returns 2π (at + 1) / (side + 1e-6).

    Coordinates counted from 0 are thereby counted from 1, and those of a whole side span one turn.

    Args:
      at: coordinates [T], counted from 0.
      side: length of the side.
    """
    at = jnp.asarray(at)
    at = at if jnp.issubdtype(at.dtype, jnp.inexact) else at.astype(jnp.result_type(float))
    return (at + 1) * (2 * math.pi / (side + 1e-6))


def rotary(
    x: Float[Array, "T K"], i: Int[Places, " T"], base: float = 10000.0, halves: bool = False
) -> Float[Array, "T K"]:
    """Rotates each pair (x[2n], x[2n+1]) by the angle i · base^{−2n/K} (Su et al. 2021, eq. 34).

    Norms are kept, and rotary(q, a)·rotary(k, b) depends on a−b only. Computed in float32 at least.

    Args:
      x: queries or keys [T K], K even.
      i: positions [T].
      base: base of the frequencies. Defaults to 10,000.
      halves: rotate the pairs (x[n], x[n + K/2]) instead. Defaults to False.

    Returns:
      The rotated rows [T K], in the dtype of x.

    Raises:
      ValueError: if K is odd.
    """
    dtype = accumulation_dtype(x.dtype)
    angle = jnp.asarray(i).astype(dtype)[:, None] * frequencies(x.shape[1], base, dtype)[None, :]
    cos, sin = jnp.cos(angle), jnp.sin(angle)
    x_ = x.astype(dtype)
    one, other = jnp.split(x_, 2, axis=1) if halves else (x_[:, 0::2], x_[:, 1::2])
    turned = one * cos - other * sin, one * sin + other * cos
    joined = jnp.concatenate(turned, axis=1) if halves else jnp.stack(turned, axis=-1)
    return joined.reshape(x.shape).astype(x.dtype)


def rotary_2d(x: Float[Array, "T K"], i: Int[Places, " T"], columns: int, base: float = 10000.0) -> Float[Array, "T K"]:
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
    x: Float[Array, "T K"], i: Int[Places, " T"], sign: int, base: float = 10000.0, scale: float = 512.0
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


def alibi_slopes(H: int) -> Float[Array, " H"]:
    """Returns the slopes of ALiBi for H heads: 2^{−8h/H} for h = 1 … H, if H is a power of two.

    Otherwise they are the slopes of the next lower power of two, followed by every other slope of the next higher one,
    as in the authors' code.

    Source: Press et al. 2022, section 3.
    """
    below = 2 ** (H.bit_length() - 1)
    slopes = [2 ** (-8 * h / below) for h in range(1, below + 1)]
    between = [2 ** (-4 * h / below) for h in range(1, 2 * below, 2)]
    return jnp.asarray(np.array(slopes + between[: H - below]), jnp.result_type(float))


def t5_buckets(
    i: Int[Places, " T"],
    j: Int[Places, " S"],
    buckets: int = 32,
    distance: int = 128,
    bidirectional: bool = True,
) -> Int[Array, "T S"]:
    """Returns the bucket of the distance of every pair (Raffel et al. 2020, section 2.1).

    Half of the buckets hold one distance each. The others cover the distances up to `distance` in equal steps of the
    logarithm. The last one also holds all larger distances.

    Args:
      i: query positions [T].
      j: key positions [S].
      buckets: number of buckets. Defaults to 32.
      distance: distance from which on all keys share the last bucket. Defaults to 128.
      bidirectional: whether later keys (j > i) have their own buckets, the second half. If False, they count as
        distance 0. Defaults to True.

    Returns:
      Bucket indices [T S], int32.
    """
    distances = jnp.asarray(i)[:, None] - jnp.asarray(j)[None, :]
    side = buckets // 2 if bidirectional else buckets
    away = jnp.abs(distances) if bidirectional else jnp.maximum(distances, 0)
    first = jnp.asarray(_bucket_starts(side, distance), away.dtype)
    bucket = jnp.searchsorted(first, away, side="right").astype(jnp.int32)
    return bucket + jnp.where(distances < 0, side, 0).astype(jnp.int32) if bidirectional else bucket


def _bucket_starts(side: int, distance: int) -> list[int]:
    """Returns the smallest distance of each bucket but the first.

    It is computed in integers, because a rounded logarithm could fall on either side of a boundary.
    """
    exact = side // 2
    steps = side - exact
    # Step m starts at the smallest n with (n / exact)^steps ≥ (distance / exact)^m, here without fractions.
    reached = lambda n, m: n**steps * exact**m >= distance**m * exact**steps
    starts = list(range(1, exact + 1))
    for m in range(1, steps):
        starts.append(next(n for n in range(starts[-1], distance + 1) if reached(n, m)))
    return starts


def clipped(i: Int[Places, " T"], j: Int[Places, " S"], clip: int) -> Int[Array, "T S"]:
    """Returns clip(j − i, −clip, clip) + clip for every pair (Shaw et al. 2018, section 3.2).

    The result is a row index into a table of 2·clip + 1 distances.

    Args:
      i: query positions [T].
      j: key positions [S].
      clip: largest distance that has its own row.

    Returns:
      Row indices [T S].
    """
    return jnp.clip(jnp.asarray(j)[None, :] - jnp.asarray(i)[:, None], -clip, clip) + clip


def relative_scores(q: Float[Array, "T K"], keys: Float[Array, "C K"], rows: Int[Array, "T S"]) -> Float[Array, "T S"]:
    """Returns q_t · r_{rows[t, j]} / √K for every pair, without making [T S K] (Shaw et al. 2018, eq. 4).

    Args:
      q: queries [T K].
      keys: one vector per distance [C K].
      rows: row of `keys` for every pair [T S], for example by `clipped`.

    Returns:
      Scores [T S].
    """
    return jnp.take_along_axis(matmul(q * q.shape[1] ** -0.5, keys.astype(q.dtype).T), rows, axis=1)


def relative_values(
    weights: Float[Array, "T S"], values: Float[Array, "C V"], rows: Int[Array, "T S"]
) -> Float[Array, "T V"]:
    """Returns Σ_j a_tj r_{rows[t, j]} (Shaw et al. 2018, eq. 3).

    The weights of one distance are summed first, so that [T S V] is never made.

    Args:
      weights: attention weights a [T S].
      values: one vector r per distance [C V].
      rows: row of `values` for every pair [T S], for example by `clipped`.

    Returns:
      The sums [T V].
    """
    empty = jnp.zeros(values.shape[0], weights.dtype)
    shares = jax.vmap(lambda weights, rows: empty.at[rows].add(weights))(weights, rows)
    return matmul(shares, values.astype(shares.dtype))


def grid(i: Int[Places, " T"], columns: int) -> tuple[Int[Array, " T"], Int[Array, " T"]]:
    """Returns the row and the column of each position."""
    return jnp.asarray(i) // columns, jnp.asarray(i) % columns


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
