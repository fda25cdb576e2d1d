import jax
import numpy as np
import pytest

from attnlab.modules.dense import Dense
from attnlab.modules.patches import Patches, split_patches


def test_patches_are_in_row_major_order_and_flattened_row_by_row():
    image = np.arange(4 * 6 * 2, dtype=np.float32).reshape(4, 6, 2)
    found = np.asarray(split_patches(jax.numpy.asarray(image), 2))
    squares = [image[y : y + 2, x : x + 2].ravel() for y in (0, 2) for x in (0, 2, 4)]
    np.testing.assert_array_equal(found, squares)


def test_a_patch_of_one_is_a_pixel():
    image = np.arange(6.0, dtype=np.float32).reshape(2, 3, 1)
    np.testing.assert_array_equal(split_patches(jax.numpy.asarray(image), 1), image.reshape(6, 1))


def test_all_patches_share_one_linear_map():
    dense = Dense(jax.random.key(0), 4, 3)
    image = jax.numpy.asarray(np.random.default_rng(0).normal(size=(4, 4, 1)), np.float32)
    found = Patches(2, dense)(image)
    assert found.shape == (4, 3)
    np.testing.assert_allclose(
        found, np.asarray(split_patches(image, 2)) @ np.asarray(dense.w[...]), rtol=1e-5, atol=1e-6
    )


def test_patches_must_divide_the_image():
    with pytest.raises(ValueError, match="patch=3 must divide the image's sides, 6 × 4"):
        split_patches(jax.numpy.zeros((6, 4, 1)), 3)
