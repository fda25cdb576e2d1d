from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.test_util import check_grads

from attnlab.ops.conv import conv_1d, conv_2d

pytestmark = pytest.mark.usefixtures("x64")


def normal(*shapes, dtype=None):
    keys = jax.random.split(jax.random.key(0), len(shapes))
    return [jax.random.normal(key, shape, dtype or float) for key, shape in zip(keys, shapes, strict=True)]


def loop(x, w, stride):
    """Computes y_ab = Σ x_{a+n−⌊(h−1)/2⌋, b+m−⌊(w−1)/2⌋} w_nm, index by index."""
    x, w = np.asarray(x), np.asarray(w)
    rows, columns, _ = x.shape
    h, width, _, D = w.shape
    y = np.zeros((rows, columns, D))
    for a, b, n, m in np.ndindex(rows, columns, h, width):
        at, to = a + n - (h - 1) // 2, b + m - (width - 1) // 2
        if 0 <= at < rows and 0 <= to < columns:
            y[a, b] += x[at, to] @ w[n, m]
    return y[::stride, ::stride]


@pytest.mark.parametrize("stride", [1, 2, 3])
@pytest.mark.parametrize("k", [1, 2, 3, 5])
def test_one_dimensional_convolution_equals_the_sum(k, stride):
    x, w = normal((7, 3), (k, 3, 2))
    np.testing.assert_allclose(conv_1d(x, w, stride), loop(x[:, None], w[:, None], stride)[:, 0], atol=1e-12)


@pytest.mark.parametrize("stride", [1, 2])
@pytest.mark.parametrize("size", [(1, 1), (3, 3), (2, 3), (5, 4)], ids=str)
def test_two_dimensional_convolution_equals_the_sum(size, stride):
    x, w = normal((5, 6, 3), (*size, 3, 2))
    np.testing.assert_allclose(conv_2d(x, w, stride), loop(x, w, stride), atol=1e-12)


def test_by_hand():
    x = jnp.array([[1.0], [2], [3]])
    w = jnp.array([[[10.0]], [[1]], [[100]]])
    np.testing.assert_array_equal(conv_1d(x, w), [[201], [312], [23]])


def test_its_gradients_agree_with_finite_differences():
    taken = lambda f: lambda *arrays: f(*map(jnp.asarray, arrays))
    check_grads(taken(partial(conv_1d, stride=2)), normal((5, 3), (3, 3, 2)), order=2, modes=["rev"])
    check_grads(taken(conv_2d), normal((4, 5, 2), (3, 3, 2, 2)), order=1, modes=["rev"])


def test_a_batch_equals_vmap():
    x, w = normal((4, 6, 3), (3, 3, 2))
    batch = jax.vmap(conv_1d, (0, None))(x, w)
    np.testing.assert_allclose(batch, jnp.stack([conv_1d(each, w) for each in x]), atol=1e-12)


@pytest.mark.parametrize(("dtype", "limit"), [("float32", 5e-6), ("bfloat16", 1.5e-2), ("float16", 2e-3)])
def test_sums_are_at_least_float32(dtype, limit):
    x, w = normal((9, 300), (3, 300, 2), dtype=dtype)
    y = conv_1d(x, w)
    exact = conv_1d(x.astype(jnp.float64), w.astype(jnp.float64))
    assert y.dtype == dtype
    assert float(jnp.abs(y.astype(jnp.float64) - exact).max() / jnp.abs(exact).max()) <= limit
