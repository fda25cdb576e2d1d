"""Functions of the distance between two positions: slopes, buckets and learned vectors."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from attnlab.ops.mask import ArrayOrNumpy
from attnlab.ops.precision import matmul


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
    i: Int[ArrayOrNumpy, " T"],
    j: Int[ArrayOrNumpy, " S"],
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


def clipped(i: Int[ArrayOrNumpy, " T"], j: Int[ArrayOrNumpy, " S"], clip: int) -> Int[Array, "T S"]:
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
