"""Statistics of attention maps: effective rank, entropy, mean attention distance, and the distance of two maps.

They are computed by numpy in float64. Leading axes are layers, heads or anything else. Undefined values are NaN.
"""

from __future__ import annotations

import numpy as np
from jaxtyping import Float


def effective_rank(maps: Float[np.ndarray, "... T S"]) -> Float[np.ndarray, "..."]:
    """Returns exp(−Σ p ln p) with p = σ/Σσ, the normalised singular values (Roy and Vetterli 2007, eq. 3-4).

    It is between 1 and min(T, S). It is NaN for a map of zeros, and for one that is not finite.

    >>> float(effective_rank(np.eye(3)).round(6)), float(effective_rank(np.ones((3, 5))).round(6))
    (3.0, 1.0)
    """
    maps = np.asarray(maps, np.float64)
    finite = np.asarray(np.isfinite(maps).all(axis=(-2, -1)))
    values = np.linalg.svd(np.where(finite[..., None, None], maps, 0), compute_uv=False)
    return np.exp(_entropy(_shared(values)))


def entropy(maps: Float[np.ndarray, "... T S"]) -> Float[np.ndarray, "... T"]:
    """Returns −Σ_j p_tj ln p_tj of every row, in nats, with p = |w|/Σ|w|.

    It is NaN for a row of zeros, and for one that is not finite.
    """
    return _entropy(_shared(maps))


def attention_distance(maps: Float[np.ndarray, "... T S"]) -> Float[np.ndarray, "... T"]:
    """Returns the mean attention distance Σ_j p_tj |t − j| of every row, in tokens, with p as in `entropy`.

    Queries and keys are both counted from their first token.
    """
    p = _shared(maps)
    T, S = p.shape[-2:]
    return (p * np.abs(np.arange(T)[:, None] - np.arange(S))).sum(axis=-1)


def distance(a: Float[np.ndarray, "... T S"], b: Float[np.ndarray, "... T S"]) -> Float[np.ndarray, "... T"]:
    """Returns ½ Σ_j |a_tj − b_tj| of every row: the total variation distance.

    It is in 0 … 1 for rows that sum to one. Rows are not normalised, so it may be larger for others.
    """
    with np.errstate(invalid="ignore"):  # ∞ − ∞
        return np.abs(np.asarray(a, np.float64) - np.asarray(b, np.float64)).sum(axis=-1) / 2


def max_entropy(allowed: np.ndarray) -> Float[np.ndarray, "... T"]:
    """Returns the largest possible entropy of a row: ln of the number of keys that it may see.

    Args:
      allowed: which pairs may meet [… T S].

    Returns:
      Entropies in nats [… T]; NaN for a row that may see no key.
    """
    count = np.asarray(allowed).sum(axis=-1)
    return np.log(np.where(count > 0, count, np.nan))


def mean(rows: Float[np.ndarray, "... T"]) -> Float[np.ndarray, "..."]:
    """Returns the mean over the rows that are not NaN; NaN if all are."""
    rows = np.asarray(rows, np.float64)
    known = ~np.isnan(rows)
    count = known.sum(axis=-1)
    return np.where(known, rows, 0).sum(axis=-1) / np.where(count > 0, count, np.nan)


def _shared(weights: np.ndarray) -> np.ndarray:
    """Returns |w|/Σ|w| along the last axis; NaN if all are zero, or one is not finite."""
    sizes = np.abs(np.asarray(weights, np.float64))
    sizes = np.where(np.isfinite(sizes), sizes, np.nan)
    # Divide by the largest first, so that the sum of finite values cannot overflow.
    top = sizes.max(axis=-1, keepdims=True, initial=0)
    sizes = sizes / np.where(top > 0, top, np.nan)
    return sizes / sizes.sum(axis=-1, keepdims=True)


def _entropy(p: np.ndarray) -> np.ndarray:
    """Returns −Σ p ln p along the last axis."""
    # 0 ln 0 = 0. Rounding may make the entropy of a single key −1e-17, so the result is clipped at 0.
    return np.maximum(-(p * np.log(np.where(p > 0, p, 1))).sum(axis=-1), 0)
