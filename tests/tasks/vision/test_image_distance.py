import tracemalloc

import numpy as np
import pytest
import scipy.linalg

from attnlab.tasks.vision.image_distance import ROWS, diversity, frechet, kernel

rng = np.random.default_rng(0)


def test_frechet_of_normal_numbers_is_known():
    """In one dimension, the distance is (μ_a − μ_b)² + (σ_a − σ_b)²."""
    a = rng.standard_normal((500, 1))
    a = (a - a.mean()) / a.std(ddof=1)
    assert frechet(3 + 2 * a, 5 * a) == pytest.approx(9 + 9)
    assert frechet(a, a) == pytest.approx(0, abs=1e-12)


def test_frechet_equals_its_formula():
    a, b = (rng.standard_normal((40, 5)) @ rng.standard_normal((5, 5)) + n for n in range(2))
    product = np.cov(a, rowvar=False) @ np.cov(b, rowvar=False)
    root = np.real(scipy.linalg.sqrtm(product))
    expected = np.sum((a.mean(0) - b.mean(0)) ** 2) + np.trace(np.cov(a.T) + np.cov(b.T) - 2 * root)
    assert frechet(a, b) == pytest.approx(expected, rel=1e-6)
    assert frechet(b, a) == pytest.approx(expected, rel=1e-6)
    # Constant features have a covariance of zero.
    assert frechet(np.zeros((3, 5)), np.ones((4, 5))) == pytest.approx(5)


def test_kernel_is_the_mean_over_pairs_of_different_examples():
    a, b = rng.standard_normal((4, 3)), rng.standard_normal((5, 3)) + 1
    k = lambda x, y: (x @ y / 3 + 1) ** 3
    of = lambda x, y, apart: np.mean([k(p, q) for n, p in enumerate(x) for m, q in enumerate(y) if n != m or not apart])
    expected = of(a, a, True) + of(b, b, True) - 2 * of(a, b, False)
    assert kernel(a, b) == pytest.approx(expected)


def test_kernel_of_many_examples_is_equal_with_bounded_memory():
    a, b = rng.standard_normal((5 * ROWS + 7, 3)), rng.standard_normal((4 * ROWS, 3)) + 1
    k = lambda x, y: (x @ y.T / 3 + 1) ** 3
    apart = lambda x: (k(x, x).sum() - k(x, x).trace()) / (len(x) * (len(x) - 1))
    assert kernel(a, b) == pytest.approx(apart(a) + apart(b) - 2 * k(a, b).mean(), rel=1e-9)
    tracemalloc.start()
    kernel(a, a)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most < 4 * ROWS * len(a) * a.itemsize


def test_kernel_has_no_bias():
    """For two samples of one distribution, the mean is 0 at any sample size.

    If pairs of an example with itself counted, it would be 2 (16 − 2.5) / 5.
    """
    found = [kernel(*rng.standard_normal((2, 5, 2))) for _ in range(400)]
    assert abs(np.mean(found)) < 4 * np.std(found) / 20 < 2 * (16 - 2.5) / 5 / 4


def test_diversity():
    assert diversity(np.full((3, 4), 0.25)) == pytest.approx(1)
    assert diversity(np.tile([1.0, 0, 0, 0], (3, 1))) == 0
    assert diversity(np.tile([0.5, 0.5, 0, 0], (3, 1))) == pytest.approx(0.5)


def test_nan_features_have_no_distance():
    a, spoilt = rng.standard_normal((3, 2)), np.array([[1.0, np.nan], [0, 0], [0, 0]])
    assert all(np.isnan([frechet(a, spoilt), kernel(a, spoilt), diversity(spoilt)]))
    with pytest.raises(ValueError, match=r"got 1 and 3$"):
        frechet(a[:1], a)
