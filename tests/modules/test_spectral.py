import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx

from attnlab.modules import spectral
from attnlab.modules.dense import Dense


@jax.jit
def norm(w):
    """Returns the norm of one weight among others, which have no effect."""
    return spectral.largest_singular_value([jnp.ones((2, 40)), w, jnp.zeros((3, 3))])[1]


rng = np.random.default_rng(0)


def spectrum(rows, columns, values):
    """Returns a matrix with these singular values and random singular vectors."""
    turn = lambda n: np.linalg.qr(rng.standard_normal((n, n)))[0][:, : len(values)]
    return (turn(rows) * np.asarray(values)) @ turn(columns).T


# Singular values as in random weights, two nearly equal, one much larger, all equal, and all but one equal.
CASES = {
    "random": rng.standard_normal((36, 24)),
    "wide": rng.standard_normal((24, 36)),
    "close": spectrum(36, 24, [1, 0.999, *np.linspace(0.9, 0, 22)]),
    "far": spectrum(24, 36, [50, *np.linspace(1, 0, 23)]),
    "equal": spectrum(36, 24, np.ones(24)),
    "crowd": spectrum(36, 24, [1, *[0.998] * 23]),
}


@pytest.mark.parametrize("scale", [1, 1e-12, 1e12])
@pytest.mark.parametrize("name", CASES)
def test_it_is_the_largest_singular_value(name, scale):
    w = (scale * CASES[name]).astype(np.float32)
    expected = np.linalg.svd(w.astype(np.float64), compute_uv=False)[0]
    # The estimate is a lower bound, as the growth of any direction is.
    assert -1e-3 < float(norm(w)) / expected - 1 < 1e-5


@pytest.mark.parametrize("name", ["random", "wide"])
def test_its_gradient_is_that_of_finite_differences(name, x64):
    w = jnp.asarray(CASES[name])
    gradient, step = jax.jit(jax.grad(norm))(w), 1e-5
    for _ in range(3):
        d = rng.standard_normal(w.shape)
        rise = (np.linalg.norm(w + step * d, 2) - np.linalg.norm(w - step * d, 2)) / (2 * step)
        np.testing.assert_allclose(np.sum(gradient * d), rise, rtol=1e-4, atol=1e-6)
    u, _, v = np.linalg.svd(w)
    np.testing.assert_allclose(gradient, np.outer(u[:, 0], v[0]), atol=1e-4)


class Two(nnx.Module):
    def __init__(self):
        self.dense = Dense(jax.random.key(0), 6, 4)
        self.dense.b[...] = jnp.arange(4.0)
        self.kernel = nnx.Param(jnp.asarray(rng.standard_normal((3, 3, 2, 5)), jnp.float32))
        self.gamma, self.nothing = nnx.Param(jnp.asarray(3.0)), nnx.Param(jnp.zeros((2, 2)))


def test_only_weights_of_a_module_are_normalized():
    module = Two()
    found = jax.jit(spectral.normalised)(module)
    assert type(found) is Two
    assert isinstance(found.dense, Dense)
    np.testing.assert_allclose(np.linalg.norm(found.dense.w[...], 2), 1, rtol=1e-4)
    kernel = np.asarray(module.kernel[...])
    largest = np.linalg.norm(kernel.reshape(18, 5), 2)
    np.testing.assert_allclose(found.kernel[...], kernel / largest, rtol=1e-4)
    np.testing.assert_array_equal(found.dense.b[...], np.arange(4))
    assert found.gamma[...] == 3
    np.testing.assert_array_equal(found.nothing[...], 0)


def test_it_does_not_depend_on_the_scale_of_a_weight():
    """W / σ(W) is the same for 2W, so no gradient lies along W (eq. 12)."""
    w = jnp.asarray(CASES["random"], jnp.float32)
    shown = jnp.asarray(rng.standard_normal(w.shape), jnp.float32)
    gradient = jax.jit(jax.grad(lambda w: jnp.sum(shown * w / norm(w))))(w)
    assert abs(np.sum(gradient * w)) < 1e-4 * np.linalg.norm(gradient) * np.linalg.norm(w)


def test_zero_has_a_finite_gradient():
    gradient = jax.jit(jax.grad(lambda w: jnp.sum(w) / (1 + norm(w))))(jnp.zeros((2, 2)))
    assert np.isfinite(gradient).all()
