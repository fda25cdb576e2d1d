import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attnlab.modules.conv import Conv, GroupNorm
from attnlab.ops.conv import conv_1d, conv_2d
from attnlab.ops.layer import layer_norm


def normal(*shape, seed=0, dtype=np.float32):
    return jnp.asarray(np.random.default_rng(seed).normal(size=shape), dtype)


@pytest.mark.parametrize(("kernel", "stride", "op"), [((3,), 2, conv_1d), ((3, 2), 1, conv_2d)], ids=["line", "image"])
def test_it_is_the_convolution_of_its_weights_and_its_bias(kernel, stride, op):
    conv = Conv(jax.random.key(0), 3, 4, kernel, stride)
    assert conv.w.shape == (*kernel, 3, 4)
    conv.b[...] = normal(4)
    x = normal(*[6, 5][: len(kernel)], 3)
    exact = op(x, conv.w[...], stride)
    np.testing.assert_allclose(conv(x), np.asarray(exact) + np.asarray(normal(4)), atol=1e-6)
    assert conv(x).shape == (*[-(-n // stride) for n in x.shape[:-1]], 4)
    bare = Conv(jax.random.key(0), 3, 4, kernel, stride, bias=False)
    assert bare.b is None
    np.testing.assert_array_equal(bare(x), exact)


def test_output_has_the_dtype_of_the_input():
    conv = Conv(jax.random.key(0), 2, 3)
    assert conv(normal(4, 4, 2, dtype=jnp.bfloat16)).dtype == jnp.bfloat16


def test_initial_weights_have_the_variance_of_he():
    conv = Conv(jax.random.key(0), 32, 64, (3, 3))
    assert abs(float(conv.w[...].std()) - (2 / (9 * 32)) ** 0.5) < 0.001


def test_lanes_are_a_vmap_of_weights():
    x = normal(2, 5, 5, 2)
    lanes = jax.vmap(lambda key: Conv(key, 2, 3))(jax.random.split(jax.random.key(0)))
    together = jax.vmap(lambda conv, x: conv(x))(lanes, x)
    np.testing.assert_allclose(together[1], jax.tree.map(lambda leaf: leaf[1], lanes)(x[1]), atol=1e-6)


@pytest.mark.parametrize("fields", [{"inputs": 0}, {"stride": 0}, {"kernel": (3, 0)}, {"kernel": (1, 1, 1)}])
def test_invalid_arguments_are_refused(fields):
    with pytest.raises(ValueError, match=next(iter(fields))):
        Conv(jax.random.key(0), **({"inputs": 1, "outputs": 1} | fields))
    with pytest.raises(ValueError, match="initialiser"):
        Conv(jax.random.key(0), 1, 1, initialiser="he")


def test_an_input_of_another_shape_is_refused():
    with pytest.raises(ValueError, match="expected 3 axes of which the last has size 3"):
        Conv(jax.random.key(0), 3, 4)(normal(5, 5, 2))


def test_group_norm_is_over_all_positions():
    x = 3 * normal(4, 5, 6) + 2
    y = np.asarray(GroupNorm(6, 3)(x)).reshape(4 * 5, 3, 2)
    np.testing.assert_allclose(y.mean(axis=(0, 2)), 0, atol=1e-6)
    np.testing.assert_allclose(y.std(axis=(0, 2)), 1, atol=1e-5)


def test_one_group_is_layer_norm_over_the_whole_example():
    x, norm = normal(4, 5, 6), GroupNorm(6)
    norm.scale[...], norm.shift[...] = normal(6, seed=1), normal(6, seed=2)
    flat = layer_norm(x.reshape(-1), jnp.ones(120), jnp.zeros(120), 1e-5).reshape(4, 5, 6)
    np.testing.assert_allclose(
        norm(x), np.asarray(flat) * np.asarray(norm.scale[...]) + np.asarray(norm.shift[...]), atol=1e-5
    )


def test_a_constant_image_becomes_the_shift_with_finite_gradients():
    norm = GroupNorm(4, 2)
    x = jnp.full((3, 3, 4), 7.0)
    np.testing.assert_allclose(norm(x), 0, atol=1e-6)
    assert np.isfinite(jax.grad(lambda x: (norm(x) * normal(3, 3, 4)).sum())(x)).all()


def test_groups_must_divide_the_width():
    with pytest.raises(ValueError, match=r"groups=4 must divide width=6"):
        GroupNorm(6, 4)
