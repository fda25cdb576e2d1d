import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attnlab.ops.positive_definite import solve

SIZES = [1, 2, 7, 8, 9, 16, 31, 64]


def drawn(K, condition, N=3):
    """Returns positive definite matrices [N K K] with eigenvalues from 1 down to 1 / condition, and vectors [N K]."""
    rng = np.random.default_rng(K)
    vectors = np.linalg.qr(rng.normal(size=(N, K, K)))[0]
    values = np.geomspace(1, 1 / condition, K)
    return (vectors * values) @ vectors.swapaxes(1, 2), rng.normal(size=(N, K))


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize("K", SIZES)
def test_the_solution_and_its_gradients_are_those_of_numpy(K):
    a, b = drawn(K, 1e6)
    target = np.random.default_rng(0).normal(size=b.shape)
    value = lambda a, b: jnp.sum(jax.vmap(solve)(a, b) * target)
    x, (da, db) = jax.jit(lambda a, b: (jax.vmap(solve)(a, b), jax.grad(value, (0, 1))(a, b)))(a, b)
    expected = np.linalg.solve(a, b[..., None])[..., 0]
    back = np.linalg.solve(a, target[..., None])[..., 0]
    np.testing.assert_allclose(x, expected, atol=1e-9 * np.abs(expected).max())
    np.testing.assert_allclose(db, back, atol=1e-9 * np.abs(back).max())
    outer = -back[:, :, None] * expected[:, None, :]
    np.testing.assert_allclose(da, outer, atol=1e-9 * np.abs(outer).max())


@pytest.mark.parametrize("K", SIZES)
def test_float32_is_as_precise_as_a_cholesky_decomposition(K):
    """The error of a backward stable method is a small multiple of the condition number times the rounding error."""
    a, b = (x.astype(np.float32) for x in drawn(K, 1e3))
    expected = np.linalg.solve(a.astype(np.float64), b.astype(np.float64)[..., None])[..., 0]
    x = jax.jit(jax.vmap(solve))(a, b)
    assert np.max(np.abs(x - expected)) < 1e3 * 2**-23 * np.abs(expected).max()
