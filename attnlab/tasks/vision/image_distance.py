"""Distances between two sets of examples, from the features [N F] and [M F] that a classifier computes for them."""

from collections.abc import Iterator

import numpy as np

ROWS = 256  # rows of the matrix of pairs that are computed at a time: the whole matrix is samples × samples


def frechet(a: np.ndarray, b: np.ndarray) -> float:
    """Computes the Fréchet distance ‖μ_a − μ_b‖² + tr(C_a + C_b − 2 (C_a C_b)^½).

    It is the distance between normal distributions with the means and covariances of both sets (Dowson and Landau 1982,
    eq. 4). With the features of Inception it is the FID of Heusel et al. 2017 (eq. 6); with other features it is
    another number. It is biased upwards for few examples, so compare sets of one size.

    Returns:
        The distance, or NaN if a feature is not finite.

    Raises:
        ValueError: If a set has fewer than two examples.
    """
    _check(a, b)
    if not np.isfinite(a).all() or not np.isfinite(b).all():
        return float("nan")
    (mean_a, cov_a), (mean_b, cov_b) = ((x.mean(axis=0), np.cov(x, rowvar=False)) for x in (a, b))
    # C_a C_b has the same eigenvalues as the symmetric C_a^½ C_b C_a^½. Rounding may make small ones negative.
    values, vectors = np.linalg.eigh(np.atleast_2d(cov_a))
    root = (vectors * np.sqrt(np.maximum(values, 0))) @ vectors.T
    shared = np.sqrt(np.maximum(np.linalg.eigvalsh(root @ np.atleast_2d(cov_b) @ root), 0)).sum()
    return float(np.sum((mean_a - mean_b) ** 2) + np.trace(np.atleast_2d(cov_a + cov_b)) - 2 * shared)


def kernel(a: np.ndarray, b: np.ndarray) -> float:
    """Computes the squared MMD with k(x, y) = (x·y/F + 1)³ by the unbiased estimate.

    For two sets of the same distribution it is around 0 and can be negative. See Gretton et al. 2012, eq. 3. The kernel
    is that of Bińkowski et al. 2018, who use the features of Inception.

    Raises:
        ValueError: If a set has fewer than two examples.
    """
    _check(a, b)
    # The diagonal is left out: pairs of an example with itself would bias the estimate upwards.
    within = lambda x: sum(np.sum(k) - np.trace(k, n) for n, k in _pairs(x, x)) / (len(x) * (len(x) - 1))
    mean = sum(np.sum(k) for _, k in _pairs(a, b)) / (len(a) * len(b))
    return float(within(a) + within(b) - 2 * mean)


def diversity(chances: np.ndarray) -> float:
    """Computes how evenly examples are distributed over classes.

    It is the entropy of the mean probabilities divided by the largest possible entropy. 1 means equally many of every
    class, and 0 means all of one class.

    Args:
        chances: The class probabilities of each example, [N classes].

    Returns:
        The diversity, or NaN if a probability is NaN.

    >>> diversity(np.eye(4))
    1.0
    """
    mean = chances.mean(axis=0)
    held = mean[mean != 0]  # NaN values are kept
    return float(-(held * np.log(held)).sum() / np.log(len(mean)))


def _pairs(x: np.ndarray, y: np.ndarray) -> Iterator[tuple[int, np.ndarray]]:
    """Yields the index of a first row of x, and the kernel of some rows from it on with all rows of y."""
    for n in range(0, len(x), ROWS):
        yield n, (x[n : n + ROWS] @ y.T / x.shape[1] + 1) ** 3


def _check(a: np.ndarray, b: np.ndarray) -> None:
    """Checks that both sets have a covariance."""
    if min(len(a), len(b)) < 2:
        raise ValueError(f"expected at least two examples in each set for a covariance, got {len(a)} and {len(b)}")
