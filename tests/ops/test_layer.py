import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.special import erf

from attnlab.ops.layer import ACTIVATIONS, dropout, gelu, l2_normalize, layer_norm, rms_norm

pytestmark = pytest.mark.usefixtures("x64")


def test_layer_norm_by_hand():
    x = jnp.array([[1.0, 2, 3, 6]])
    scale, shift = jnp.array([1.0, 1, 2, 1]), jnp.array([0.0, 1, 0, 0])
    root = np.sqrt(3.5 + 1e-6)
    np.testing.assert_allclose(layer_norm(x, scale, shift), [[-2 / root, -1 / root + 1, 0, 3 / root]], atol=1e-12)


def test_rms_norm_removes_no_mean():
    x = jnp.array([[3.0, 4]])
    np.testing.assert_allclose(rms_norm(x, jnp.array([1.0, 2]), 0.5), [[3 / np.sqrt(13), 8 / np.sqrt(13)]], atol=1e-12)


@pytest.mark.parametrize(
    "norm", [lambda x: layer_norm(x, jnp.ones(3), jnp.zeros(3)), lambda x: rms_norm(x, jnp.ones(3))]
)
def test_a_constant_row_has_a_finite_gradient(norm):
    y, back = jax.vjp(norm, jnp.zeros((1, 3)))
    assert np.isfinite(y).all()
    assert np.isfinite(back(jnp.ones((1, 3)))[0]).all()


def test_gelu_exact_and_approximate():
    x = jnp.linspace(-4, 4, 33)
    np.testing.assert_allclose(gelu(x), x * (1 + erf(np.asarray(x) / np.sqrt(2))) / 2, atol=1e-12)
    tanh = 0.5 * x * (1 + jnp.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))
    np.testing.assert_allclose(gelu(x, approximate=True), tanh, atol=1e-12)
    np.testing.assert_array_equal(ACTIVATIONS["gelu_tanh"](x), gelu(x, approximate=True))
    assert 1e-4 < np.abs(gelu(x) - tanh).max() < 5e-4


def test_norms_and_activations_equal_pytorch():
    torch = pytest.importorskip("torch")
    F, rng = torch.nn.functional, np.random.default_rng(0)
    x, scale, shift = rng.normal(size=(5, 8)), rng.normal(size=8), rng.normal(size=8)
    at, gain, offset = (torch.tensor(each) for each in (x, scale, shift))
    pairs = [
        (layer_norm(*map(jnp.asarray, (x, scale, shift)), 1e-5), F.layer_norm(at, (8,), gain, offset, 1e-5)),
        (rms_norm(*map(jnp.asarray, (x, scale)), 1e-5), F.rms_norm(at, (8,), gain, 1e-5)),
        (gelu(jnp.asarray(x)), F.gelu(at)),
        (gelu(jnp.asarray(x), approximate=True), F.gelu(at, approximate="tanh")),
        (ACTIVATIONS["silu"](jnp.asarray(x)), F.silu(at)),
        (l2_normalize(jnp.asarray(x)), F.normalize(at, dim=1, eps=1e-12)),
    ]
    for found, other in pairs:
        np.testing.assert_allclose(found, other.numpy(), atol=1e-12)


def test_l2_normalized_rows_have_norm_one_up_to_epsilon():
    """Checks 3-4-5 by hand, and 3-4-5 in units of 1e-4 with ε = 7.5e-7: ‖x‖² + ε = 1e-6, which gives 0.3, 0.4."""
    np.testing.assert_allclose(l2_normalize(jnp.array([[3.0, 4.0]])), [[0.6, 0.8]], rtol=1e-15)
    np.testing.assert_allclose(
        l2_normalize(jnp.array([[3e-4, 4e-4], [0, 0]]), 7.5e-7), [[0.3, 0.4], [0, 0]], rtol=1e-12
    )


def test_dropout_keeps_the_mean_and_is_off_without_a_key():
    x = jnp.ones(20000)
    y = dropout(x, 0.25, jax.random.key(0))
    assert set(np.unique(y)) == {0.0, 1 / 0.75}
    assert float(y.mean()) == pytest.approx(1, abs=0.02)
    assert dropout(x, 0.25, None) is x
