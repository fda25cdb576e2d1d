import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attnlab.ops.position import rotary, sinusoidal

pytestmark = pytest.mark.usefixtures("x64")
I32 = jnp.int32


def test_the_sinusoid_interleaves_sine_and_cosine():
    p = sinusoidal(jnp.array([0, 3], I32), 4, jnp.float64)
    np.testing.assert_allclose(p, [[0, 1, 0, 1], [np.sin(3), np.cos(3), np.sin(0.03), np.cos(0.03)]], atol=1e-12)


def test_products_of_sinusoids_depend_on_the_distance_alone():
    p = sinusoidal(jnp.arange(40, dtype=I32), 16, jnp.float64)
    products = p @ p.T
    frequencies = 10000.0 ** (-2 * np.arange(8) / 16)
    for distance in (0, 1, 7, 30):
        expected = np.cos(frequencies * distance).sum()
        np.testing.assert_allclose(np.diagonal(products, distance), expected, atol=1e-10)


def test_products_of_turned_vectors_depend_on_the_distance_alone_and_norms_are_kept():
    q, k = (jnp.tile(jax.random.normal(jax.random.key(n), (1, 8)), (30, 1)) for n in (0, 1))
    i = jnp.arange(30, dtype=I32)
    products = rotary(q, i) @ rotary(k, i).T
    for distance in (-11, 0, 3):
        diagonal = np.diagonal(products, distance)
        np.testing.assert_allclose(diagonal, diagonal[0], atol=1e-10)
    assert np.ptp(products[0]) > 0.1
    np.testing.assert_allclose(jnp.linalg.norm(rotary(q, i), axis=1), jnp.linalg.norm(q, axis=1), atol=1e-12)


def test_half_precision_angles_are_taken_in_single():
    i = jnp.array([1000], I32)
    np.testing.assert_allclose(
        sinusoidal(i, 4, jnp.bfloat16).astype(jnp.float64), sinusoidal(i, 4, jnp.float64), atol=4e-3
    )
