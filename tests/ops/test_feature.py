import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attnlab.ops.feature import FEATURES

pytestmark = pytest.mark.usefixtures("x64")


@pytest.mark.parametrize("name", FEATURES)
def test_a_feature_has_the_dimension_it_states(name):
    assert FEATURES[name](jnp.ones((3, 5))).shape == (3, FEATURES[name].dim(5))


def test_elu_plus_one_is_positive_continuous_and_has_finite_gradients_at_the_extremes():
    phi = FEATURES["elu+1"]
    np.testing.assert_allclose(phi(jnp.array([[-1.0, 0, 2]])), [[np.exp(-1), 1, 3]], atol=1e-12)
    x = jnp.array([[-1e4, -100.0, 0, 100, 1e4]])
    y, back = jax.vjp(phi, x)
    assert (y >= 0).all()
    assert np.isfinite(back(jnp.ones_like(y))[0]).all()
