import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attnlab.modules.upsample import Upsample
from attnlab.ops.conv import conv_2d

rng = np.random.default_rng(0)
doubled = jax.jit(lambda up, x: up(x))


def drawn(*shape):
    return jnp.asarray(rng.standard_normal(shape), jnp.float32)


def test_it_is_the_transpose_of_a_convolution_of_stride_two():
    up = Upsample(jax.random.key(0), 3, 2)
    x, other = drawn(3, 5, 3), drawn(6, 10, 2)
    y = doubled(up, x)
    assert y.shape == (6, 10, 2)
    assert y.dtype == jnp.float32
    down = conv_2d(other, up.w[...].swapaxes(2, 3), 2)
    np.testing.assert_allclose(np.sum(y * other), np.sum(x * down), rtol=1e-5)


def test_one_pixel_outputs_its_kernel():
    up = Upsample(jax.random.key(0), 1, 1)
    up.b[...] = jnp.ones(1)
    y = doubled(up, jnp.zeros((4, 4, 1)).at[1, 1].set(2))
    np.testing.assert_allclose(y[1:5, 1:5], 1 + 2 * up.w[..., 0], rtol=1e-6)
    np.testing.assert_array_equal(np.delete(y, range(1, 5), axis=0), 1)


def test_every_output_pixel_has_the_same_number_of_taps():
    up = Upsample(jax.random.key(0), 1, 1)
    up.w[...] = jnp.ones((4, 4, 1, 1))
    np.testing.assert_array_equal(doubled(up, jnp.ones((4, 4, 1)))[1:-1, 1:-1], 4)


def test_initially_it_is_a_convolution_of_repeated_pixels():
    up, x = Upsample(jax.random.key(0), 2, 3), drawn(3, 4, 2)
    # w_n = r_n + r_{n−1} along each side. The transposed convolution flips the kernel.
    kernel = np.asarray(up.w[...])
    for axis in (0, 1):
        rows = np.moveaxis(kernel, axis, 0)
        kernel = np.moveaxis(np.stack([rows[0], rows[1] - rows[0], rows[3]]), 0, axis)
    expected = conv_2d(jnp.asarray(np.repeat(np.repeat(x, 2, 0), 2, 1)), jnp.asarray(kernel[::-1, ::-1]))
    np.testing.assert_allclose(doubled(up, x), expected, atol=1e-5)
    even = np.asarray(doubled(up, jnp.ones((4, 4, 2))))[1:-1, 1:-1]
    np.testing.assert_allclose(even, np.broadcast_to(even[:1, :1], even.shape), atol=1e-5)


def test_another_number_of_channels_is_refused():
    with pytest.raises(ValueError, match="x has 2 channels, expected 4"):
        Upsample(jax.random.key(0), 4, 1)(jnp.ones((3, 3, 2)))
    with pytest.raises(ValueError, match="initialiser='he' must be one of gaussian, xavier, kaiming"):
        Upsample(jax.random.key(0), 4, 1, initialiser="he")
