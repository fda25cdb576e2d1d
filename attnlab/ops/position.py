"""Positions as numbers: sines, turns, slopes, buckets, distances, and the path of a dynamical system.

A grid is an image read row by row: position i stands in row i // columns and column i mod columns.
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

XPOS_GAMMA = 0.4  # the smallest decay of xPos is γ / (1 + γ)


def frequencies(D: int, base: float, dtype) -> Float[Array, " half"]:
    """base^{−2i/D} for i = 0 … D/2−1, in radians a position. Raises ValueError for an odd D."""
    if D % 2:
        raise ValueError(f"a width of {D} has no pairs: positions that turn or swing need an even one")
    return jnp.asarray(base, dtype) ** (-jnp.arange(0, D, 2, dtype=dtype) / D)


def sinusoidal(i: Real[Places, " T"], D: int, dtype=jnp.float32) -> Float[Array, "T D"]:
    """p_t[2i] = sin(t / 10000^{2i/D}), p_t[2i+1] = cos of the same (Vaswani et al. 2017, section 3.5).

    p_a·p_b depends on a−b alone; t may be no whole number. D is even. The angle is taken in float32 at least.
    """
    angle = (
        jnp.asarray(i).astype(accumulation_dtype(dtype))[:, None]
        * frequencies(D, 10000.0, accumulation_dtype(dtype))[None, :]
    )
    return jnp.stack([jnp.sin(angle), jnp.cos(angle)], axis=-1).reshape(i.shape[0], D).astype(dtype)


def sinusoidal_2d(
    i: Int[Places, " T"], D: int, columns: int, dtype=jnp.float32, rows: int | None = None
) -> Float[Array, "T D"]:
    """The sinusoid of the row in the first half, that of the column in the second. D is divisible by 4.

    Of a grid whose number of `rows` is given, both are `normalised`, as in DETR (Carion et al. 2020); else they are
    counted from 0.
    """
    places = grid(i, columns)
    if rows is not None:
        places = [normalised(at, side) for at, side in zip(places, (rows, columns), strict=True)]
    return jnp.concatenate([sinusoidal(at, D // 2, dtype) for at in places], axis=1)


def normalised(at: Real[Places, " T"], side: int) -> Real[Array, " T"]:
    """2π (at + 1) / (side + 1e-6) for places counted from 0: those of a side are counted from 1, and span a turn."""
    at = jnp.asarray(at)
    at = at if jnp.issubdtype(at.dtype, jnp.inexact) else at.astype(jnp.result_type(float))
    return (at + 1) * (2 * math.pi / (side + 1e-6))


def rotary(
    x: Float[Array, "T K"], i: Int[Places, " T"], base: float = 10000.0, halves: bool = False
) -> Float[Array, "T K"]:
    """Turn each pair (x[2n], x[2n+1]) by the angle i · base^{−2n/K} (Su et al. 2021, eq. 34).

    `halves`: pairs are (x[n], x[n + K/2]) instead. Norms are kept, and rotary(q, a)·rotary(k, b) depends on a−b alone.
    K is even.
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
    """The first half turned by the row, the second by the column. K is divisible by 4."""
    half = x.shape[1] // 2
    row, column = grid(i, columns)
    return jnp.concatenate([rotary(x[:, :half], row, base), rotary(x[:, half:], column, base)], axis=1)


def xpos(
    x: Float[Array, "T K"], i: Int[Places, " T"], sign: int, base: float = 10000.0, scale: float = 512.0
) -> Float[Array, "T K"]:
    """`rotary`, and each pair n times ζ_n^{sign · i / scale}, ζ_n = (2n/K + γ) / (1 + γ) (Sun et al. 2022, section 4).

    With sign 1 for queries and −1 for keys, products depend on i−j alone and fade by ζ_n^{(i−j) / scale}. The factors
    by themselves leave the range of a dtype as i grows: from `xpos_max_length` on the answer is NaN. K is even.
    """
    dtype = accumulation_dtype(x.dtype)
    zeta = (jnp.arange(0, x.shape[1], 2, dtype=dtype) / x.shape[1] + XPOS_GAMMA) / (1 + XPOS_GAMMA)
    power = jnp.asarray(i).astype(dtype)[:, None] * (sign / scale)
    factor = jnp.repeat(jnp.exp(power * jnp.log(zeta)[None, :]), 2, axis=1)
    inside = (jnp.asarray(i) < xpos_max_length(x.dtype, scale))[:, None]
    # Multiplied before the cast: a product in half precision would round twice.
    turned = rotary(x.astype(dtype), i, base) * jnp.where(inside, factor, jnp.nan)
    return turned.astype(x.dtype)


def xpos_max_length(dtype, scale: float = 512.0) -> int:
    """How many positions xPos may scale in a dtype: its factors stay within the square root of the dtype's range.

    About 18,000 positions in float32 and bfloat16, 2,300 in float16.
    """
    return int(scale * jnp.finfo(dtype).maxexp / 2 / math.log2((1 + XPOS_GAMMA) / XPOS_GAMMA))


def alibi_slopes(H: int) -> Float[Array, " H"]:
    """2^{−8h/H} for h = 1 … H, where H is a power of two (Press et al. 2022, section 3).

    Otherwise those of the power of two below, then every other one of the power above, as in the authors' code.
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
    """Which bucket the distance of every pair is in (Raffel et al. 2020, section 2.1).

    Half of the buckets hold one distance each, the others reach out to `distance` in equal steps of its logarithm,
    and the last holds all beyond. Bidirectionally, keys behind the query (j > i) have buckets of their own, the
    second half; otherwise they count as distance 0.
    """
    distances = jnp.asarray(i)[:, None] - jnp.asarray(j)[None, :]
    side = buckets // 2 if bidirectional else buckets
    away = jnp.abs(distances) if bidirectional else jnp.maximum(distances, 0)
    first = jnp.asarray(_bucket_starts(side, distance), away.dtype)
    bucket = jnp.searchsorted(first, away, side="right").astype(jnp.int32)
    return bucket + jnp.where(distances < 0, side, 0).astype(jnp.int32) if bidirectional else bucket


def _bucket_starts(side: int, distance: int) -> list[int]:
    """The least distance of each bucket but the first; in whole numbers, where a logarithm would round either way."""
    exact = side // 2
    steps = side - exact
    # The m-th step begins at the least n with (n / exact)^steps ≥ (distance / exact)^m.
    reached = lambda n, m: n**steps * exact**m >= distance**m * exact**steps
    starts = list(range(1, exact + 1))
    for m in range(1, steps):
        starts.append(next(n for n in range(starts[-1], distance + 1) if reached(n, m)))
    return starts


def clipped(i: Int[Places, " T"], j: Int[Places, " S"], clip: int) -> Int[Array, "T S"]:
    """clip(j − i, −clip, clip) + clip: the row of a table of 2·clip + 1 distances (Shaw et al. 2018, section 3.2)."""
    return jnp.clip(jnp.asarray(j)[None, :] - jnp.asarray(i)[:, None], -clip, clip) + clip


def relative_scores(q: Float[Array, "T K"], keys: Float[Array, "C K"], rows: Int[Array, "T S"]) -> Float[Array, "T S"]:
    """q_t · r_{rows[t, j]} / √K, for every pair (Shaw et al. 2018, eq. 4): no [T S K] is made."""
    return jnp.take_along_axis(matmul(q * q.shape[1] ** -0.5, keys.astype(q.dtype).T), rows, axis=1)


def relative_values(
    weights: Float[Array, "T S"], values: Float[Array, "C V"], rows: Int[Array, "T S"]
) -> Float[Array, "T V"]:
    """Σ_j a_tj r_{rows[t, j]} (Shaw et al. 2018, eq. 3): the weights are summed by distance first."""
    empty = jnp.zeros(values.shape[0], weights.dtype)
    shares = jax.vmap(lambda weights, rows: empty.at[rows].add(weights))(weights, rows)
    return matmul(shares, values.astype(shares.dtype))


def grid(i: Int[Places, " T"], columns: int) -> tuple[Int[Array, " T"], Int[Array, " T"]]:
    """The row and the column of each position."""
    return jnp.asarray(i) // columns, jnp.asarray(i) % columns


def flow_path(flow: Callable, start: Float[Array, "..."], length: int, step: float) -> Float[Array, "length ..."]:
    """p(0), p(step), … p((length−1)·step) of dp/dt = flow(t, p), p(0) = start.

    By one step of the classical method of Runge and Kutta, of fourth order, between two points.
    """

    def advance(p, n):
        t = n.astype(p.dtype) * step
        one = flow(t, p)
        two = flow(t + step / 2, p + step / 2 * one)
        three = flow(t + step / 2, p + step / 2 * two)
        four = flow(t + step, p + step * three)
        return p + step / 6 * (one + 2 * two + 2 * three + four), p

    return jax.lax.scan(advance, start, jnp.arange(length, dtype=jnp.int32))[1]
