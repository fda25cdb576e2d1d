"""Scores: functions that compare every query with every key, before the softmax.

Each score is a function `(q [T K], k [S K], **learned) -> [T S]`, computed in `accumulation_dtype` precision. `SCORES`
lists the scores by name. `attnlab.ops.learned_score` gives the arrays that a score learns.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from attnlab.ops.layer import l2_normalize
from attnlab.ops.precision import accumulation_dtype, matmul
from attnlab.registry import Registry


def dot(q: Float[Array, "T K"], k: Float[Array, "S K"]) -> Float[Array, "T S"]:
    """Dot product, q·k (Luong et al. 2015, section 3.1)."""
    return matmul(q, k.T)


def scaled_dot(q: Float[Array, "T K"], k: Float[Array, "S K"]) -> Float[Array, "T S"]:
    """Scaled dot product, q·k / √K (Vaswani et al. 2017, eq. 1).

    The score has variance one if the components of q and k are independent with variance one.
    """
    return dot(*_scaled(q, k))


def _scaled(q, k):
    """Returns scaled queries, and the keys, whose dot product is `scaled_dot`."""
    # Scaling the queries instead of the scores takes T·K products instead of T·S.
    return q * q.shape[-1] ** -0.5, k


def general(q: Float[Array, "T K"], k: Float[Array, "S K"], w: Float[Array, "K K"]) -> Float[Array, "T S"]:
    """Bilinear form, q W kᵀ (Luong et al. 2015, section 3.1, "general").

    Args:
      q: queries [T K].
      k: keys [S K].
      w: matrix W [K K].

    Returns:
      Scores [T S].
    """
    return dot(*_turned(q, k, w))


def _turned(q, k, w):
    """Returns q W, and the keys, whose dot product is `general`."""
    q, k, w = _wide(q, k, w)
    return matmul(q, w), k


def additive(
    q: Float[Array, "T K"],
    k: Float[Array, "S K"],
    w_q: Float[Array, "K H"],
    w_k: Float[Array, "K H"],
    w: Float[Array, " H"],
) -> Float[Array, "T S"]:
    """Additive score, tanh(q W_q + k W_k)·w: one hidden vector per pair (Bahdanau et al. 2015, appendix A.1.2).

    Args:
      q: queries [T K].
      k: keys [S K].
      w_q: projection of queries [K H].
      w_k: projection of keys [K H].
      w: output weights of the hidden layer [H].

    Returns:
      Scores [T S]. The hidden vectors [T S H] are never held at once.
    """
    q, k, w_q, w_k, w = _wide(q, k, w_q, w_k, w)
    return hidden_scores(matmul(q, w_q), matmul(k, w_k), w)


def concat(
    q: Float[Array, "T K"], k: Float[Array, "S K"], w: Float[Array, "2 K H"], u: Float[Array, " H"]
) -> Float[Array, "T S"]:
    """Concatenation score, tanh([q ; k] W)·u (Luong et al. 2015, section 3.1, "concat").

    W is given as two halves, w[0] for q and w[1] for k. Since [q ; k] W = q w[0] + k w[1], no pair is concatenated.

    Args:
      q: queries [T K].
      k: keys [S K].
      w: the two halves of W [2 K H].
      u: output weights of the hidden layer [H].

    Returns:
      Scores [T S].
    """
    return additive(q, k, w_q=w[0], w_k=w[1], w=u)


def gat(q: Float[Array, "T K"], k: Float[Array, "S K"], a: Float[Array, "2 K"]) -> Float[Array, "T S"]:
    """Graph attention score, LeakyReLU(a·[q ; k]) with slope 0.2 (Veličković et al. 2018, eq. 3).

    Args:
      q: queries [T K].
      k: keys [S K].
      a: weights [2 K]; a[0] applies to q and a[1] to k.

    Returns:
      Scores [T S].
    """
    q, k, a = _wide(q, k, a)
    return jax.nn.leaky_relu((q @ a[0])[:, None] + (k @ a[1])[None, :], 0.2)


def location(q: Float[Array, "T K"], k: Float[Array, "S K"], w: Float[Array, "K L"]) -> Float[Array, "T S"]:
    """Location score, q·w_j: it depends on the query and the key's position, not on the key (Luong et al. 2015, eq. 8).

    The key in row j uses column j of w. If keys are at other positions than 0 … S−1, select their columns of w first,
    as `Scores` does.

    Args:
      q: queries [T K].
      k: keys [S K], of which only the number is used.
      w: one learned column per position [K L].

    Returns:
      Scores [T S].

    Raises:
      ValueError: if w has fewer columns than there are keys.
    """
    S, length = k.shape[0], w.shape[1]
    if length < S:
        raise ValueError(f"location: w has columns for {length} positions, got {S} keys")
    q, w = _wide(q, w)
    return matmul(q, w[:, :S])


def cosine(q: Float[Array, "T K"], k: Float[Array, "S K"], log_scale: Float[Array, ""]) -> Float[Array, "T S"]:
    """Scaled cosine, exp(log_scale)·(q·k) / (‖q‖‖k‖), with a factor of at most 100 (Liu et al. 2022, eq. 2).

    In the paper's notation, 1/τ = exp(log_scale). The factor is learned because a plain cosine lies in −1 … 1, where a
    softmax over many keys is almost uniform. As an exponential it stays positive.

    Args:
      q: queries [T K].
      k: keys [S K].
      log_scale: logarithm of the factor, a scalar.

    Returns:
      Scores [T S].
    """
    return dot(*_directions(q, k, log_scale))


def _directions(q, k, log_scale):
    """Returns scaled unit queries and unit keys, whose dot product is `cosine`."""
    q, k, log_scale = _wide(q, k, log_scale)
    return l2_normalize(q) * jnp.exp(jnp.minimum(log_scale, math.log(100.0))), l2_normalize(k)


SCORES: dict[str, Callable] = Registry("SCORES")
SCORES |= {score.__name__: score for score in (dot, scaled_dot, general, additive, concat, location, gat, cosine)}

# Scores that are a dot product of transformed queries and keys, with the function that transforms them once per call.
PLAIN: dict[Callable, Callable] = {scaled_dot: _scaled, general: _turned, cosine: _directions}

# Scores for which rotary positions depend on the distance only: multiples of q·k, or of its normalised form.
PRODUCTS = (dot, scaled_dot, cosine)


def soft_cap(scores: Float[Array, "T S"], cap: float) -> Float[Array, "T S"]:
    """Returns c·tanh(s / c), which is close to s for small scores and never leaves −c … c (Gemma 2, 2024, section 2).

    Args:
      scores: scores s [T S].
      cap: the bound c, above 0.
    """
    return cap * jnp.tanh(scores / cap)


def _wide(*arrays: Array) -> tuple[Array, ...]:
    """Casts all arrays to the accumulation dtype of the first: float32 at least."""
    return tuple(x.astype(accumulation_dtype(arrays[0].dtype)) for x in arrays)


# Number of hidden values that `hidden_scores` holds at a time.
ROOM = 2**20


def hidden_scores(a: Float[Array, "T H"], b: Float[Array, "S H"], w: Float[Array, " H"]) -> Float[Array, "T S"]:
    """Returns tanh(a_t + b_s)·w for every pair.

    Queries are processed a few at a time, and each hidden vector is recomputed for the gradient. So [T S H] is never
    held, forward or backward.

    Args:
      a: the queries' share of the hidden layer [T H].
      b: the keys' share of the hidden layer [S H].
      w: output weights [H].

    Returns:
      Scores [T S].
    """

    @jax.checkpoint
    def row(a):
        return jnp.tanh(a[None, :] + b) @ w

    return jax.lax.map(row, a, batch_size=min(a.shape[0], max(1, ROOM // max(1, b.size)))) if a.size else a @ b.T
