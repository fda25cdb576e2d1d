"""How like one another two sets of examples are, by what a classifier sees in them: features [N F] and [M F]."""

from collections.abc import Iterator

import numpy as np

ROWS = 256  # of a matrix of pairs, made at a time: whole it would be samples × samples


def frechet(a: np.ndarray, b: np.ndarray) -> float:
    """‖μ_a − μ_b‖² + tr(C_a + C_b − 2 (C_a C_b)^½): between normal distributions of their means and covariances.

    Dowson and Landau 1982, eq. 4. With the features of Inception it is what Heusel et al. 2017 named FID (eq. 6); with
    other features it is another number. Few examples make it too large: compare sets of one size. NaN where a feature
    is not finite.

    Raises ValueError where there are fewer than two examples of a kind.
    """
    _check(a, b)
    if not np.isfinite(a).all() or not np.isfinite(b).all():
        return float("nan")
    (mean_a, cov_a), (mean_b, cov_b) = ((x.mean(axis=0), np.cov(x, rowvar=False)) for x in (a, b))
    # The eigenvalues of C_a C_b are those of the symmetric C_a^½ C_b C_a^½; rounding may take the small below zero.
    values, vectors = np.linalg.eigh(np.atleast_2d(cov_a))
    root = (vectors * np.sqrt(np.maximum(values, 0))) @ vectors.T
    shared = np.sqrt(np.maximum(np.linalg.eigvalsh(root @ np.atleast_2d(cov_b) @ root), 0)).sum()
    return float(np.sum((mean_a - mean_b) ** 2) + np.trace(np.atleast_2d(cov_a + cov_b)) - 2 * shared)


def kernel(a: np.ndarray, b: np.ndarray) -> float:
    """MMD² with k(x, y) = (x·y/F + 1)³, the estimate without bias: around 0, and below it too, for two sets alike.

    Gretton et al. 2012, eq. 3; the kernel is that of Bińkowski et al. 2018, whose features are Inception's. Raises as
    `frechet`.
    """
    _check(a, b)
    # No example is compared with itself: that is what makes the sum of squares too large.
    apart = lambda x: sum(np.sum(k) - np.trace(k, n) for n, k in _pairs(x, x)) / (len(x) * (len(x) - 1))
    mean = sum(np.sum(k) for _, k in _pairs(a, b)) / (len(a) * len(b))
    return float(apart(a) + apart(b) - 2 * mean)


def diversity(chances: np.ndarray) -> float:
    """How evenly examples spread over classes: the entropy of their mean chances [N classes] in those of all alike.

    1: as many of every class; 0: all of one. NaN where a chance is.

    >>> diversity(np.eye(4))
    1.0
    """
    mean = chances.mean(axis=0)
    held = mean[mean != 0]  # what is NaN stays in
    return float(-(held * np.log(held)).sum() / np.log(len(mean)))


def _pairs(x: np.ndarray, y: np.ndarray) -> Iterator[tuple[int, np.ndarray]]:
    """The kernel of some rows of x with all of y, and which of x the first of them is."""
    for n in range(0, len(x), ROWS):
        yield n, (x[n : n + ROWS] @ y.T / x.shape[1] + 1) ** 3


def _check(a: np.ndarray, b: np.ndarray) -> None:
    if min(len(a), len(b)) < 2:
        raise ValueError(f"{len(a)} and {len(b)} examples have no covariance: two of each are needed")
