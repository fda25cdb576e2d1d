import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attnlab.ops.nystrom import means, pseudo_inverse, segments

pytestmark = pytest.mark.usefixtures("x64")


def softmax(scores):
    return jax.nn.softmax(scores, axis=1)


def test_segments_are_equally_long_and_count_only_kept_tokens():
    every, at = jnp.ones(7, bool), jnp.arange(7, dtype=jnp.int32)
    np.testing.assert_array_equal(segments(every, at, 3), [0, 0, 0, 1, 1, 2, 2])
    np.testing.assert_array_equal(segments(every, at, 7), np.arange(7))
    np.testing.assert_array_equal(segments(every, at, 10), np.arange(7))
    np.testing.assert_array_equal(segments(every, at[::-1], 3), [2, 2, 1, 1, 0, 0, 0])
    keep = jnp.array([0, 1, 1, 0, 1, 0, 1], bool)
    np.testing.assert_array_equal(segments(keep, at, 2), [-1, 0, 0, -1, 1, -1, 1])
    np.testing.assert_array_equal(segments(keep & False, at, 2), [-1] * 7)


def test_means_of_segments_and_zero_for_an_empty_one():
    x = jnp.array([[1.0, 2], [3, 4], [5, 9], [7, 7]])
    found = means(x, jnp.array([0, 0, 2, -1], jnp.int32), 3)
    np.testing.assert_allclose(found, [[2, 3], [0, 0], [5, 9]])


def test_it_converges_to_the_inverse_as_each_singular_value_does():
    a = softmax(3 * jnp.eye(6) + jax.random.normal(jax.random.key(0), (6, 6)))
    np.testing.assert_allclose(pseudo_inverse(a, 12), np.linalg.inv(a), atol=1e-9)
    for steps in (1, 3, 6):
        x = np.linalg.svd(np.asarray(a), compute_uv=False) ** 2 / np.asarray(a).sum(axis=0).max()
        for _ in range(steps):
            x = 1 - (1 - x) ** 3 * (1 - x / 4)
        found = np.linalg.eigvals(np.asarray(a @ pseudo_inverse(a, steps)))
        np.testing.assert_allclose(np.sort(found.real), np.sort(x), atol=1e-12)


def test_a_singular_matrix_gets_its_pseudo_inverse():
    rows = softmax(2 * jax.random.normal(jax.random.key(1), (3, 6)))
    a = rows[jnp.array([0, 1, 2, 0, 1, 2])]
    np.testing.assert_allclose(pseudo_inverse(a, 14), np.linalg.pinv(a), atol=1e-9)
    assert not np.any(pseudo_inverse(a * 0, 6))
