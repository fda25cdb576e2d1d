"""How attention maps spread: rank, entropy and reach, and how far two of them are from one another.

Numpy, in float64; leading axes are layers, heads, or whatever else. What is undefined is NaN.
"""

from __future__ import annotations

import numpy as np
from jaxtyping import Float


def effective_rank(maps: Float[np.ndarray, "... T S"]) -> Float[np.ndarray, "..."]:
    """exp(−Σ p ln p), p = σ/Σσ the shares of the singular values (Roy and Vetterli 2007, eq. 3-4): 1 … min(T, S).

    NaN for a map of zeros, and for one that is not finite.

    >>> float(effective_rank(np.eye(3)).round(6)), float(effective_rank(np.ones((3, 5))).round(6))
    (3.0, 1.0)
    """
    maps = np.asarray(maps, np.float64)
    finite = np.asarray(np.isfinite(maps).all(axis=(-2, -1)))
    values = np.linalg.svd(np.where(finite[..., None, None], maps, 0), compute_uv=False)
    return np.exp(_entropy(_shared(values)))


def entropy(maps: Float[np.ndarray, "... T S"]) -> Float[np.ndarray, "... T"]:
    """−Σ_j p_tj ln p_tj of every row, in nats, p = |w|/Σ|w| the shares that its weights have in it by their size.

    NaN for a row of zeros, and for one that is not finite.
    """
    return _entropy(_shared(maps))


def attention_distance(maps: Float[np.ndarray, "... T S"]) -> Float[np.ndarray, "... T"]:
    """Σ_j p_tj |t − j| of every row, in tokens, p as in `entropy`; both sides are counted from their first token."""
    p = _shared(maps)
    T, S = p.shape[-2:]
    return (p * np.abs(np.arange(T)[:, None] - np.arange(S))).sum(axis=-1)


def distance(a: Float[np.ndarray, "... T S"], b: Float[np.ndarray, "... T S"]) -> Float[np.ndarray, "... T"]:
    """½ Σ_j |a_tj − b_tj| of every row: the total variation of two distributions, 0 … 1.

    Rows are taken as they are: of those that do not sum to one it may be more than 1.
    """
    with np.errstate(invalid="ignore"):  # ∞ − ∞
        return np.abs(np.asarray(a, np.float64) - np.asarray(b, np.float64)).sum(axis=-1) / 2


def most_entropy(allowed: np.ndarray) -> Float[np.ndarray, "... T"]:
    """ln of how many keys a row may see, [... T S] -> [... T]: the most that its entropy can be. NaN where none."""
    count = np.asarray(allowed).sum(axis=-1)
    return np.log(np.where(count > 0, count, np.nan))


def mean(rows: Float[np.ndarray, "... T"]) -> Float[np.ndarray, "..."]:
    """The mean over the rows that are not NaN; NaN where all are."""
    rows = np.asarray(rows, np.float64)
    known = ~np.isnan(rows)
    count = known.sum(axis=-1)
    return np.where(known, rows, 0).sum(axis=-1) / np.where(count > 0, count, np.nan)


def _shared(weights: np.ndarray) -> np.ndarray:
    """The sizes along the last axis, summing to one; NaN where all are zero, or one is not finite."""
    sizes = np.abs(np.asarray(weights, np.float64))
    sizes = np.where(np.isfinite(sizes), sizes, np.nan)
    # Divided by the largest first: a sum of what is finite is finite then.
    top = sizes.max(axis=-1, keepdims=True, initial=0)
    sizes = sizes / np.where(top > 0, top, np.nan)
    return sizes / sizes.sum(axis=-1, keepdims=True)


def _entropy(p: np.ndarray) -> np.ndarray:
    # 0 ln 0 = 0. Rounding may leave −1e-17 of a certainty.
    return np.maximum(-(p * np.log(np.where(p > 0, p, 1))).sum(axis=-1), 0)
