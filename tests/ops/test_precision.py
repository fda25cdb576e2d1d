import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.test_util import check_grads

from attnlab.ops.precision import accumulation_dtype, divide, matmul, weighted_sum


def test_accumulation_dtype_is_at_least_float32():
    assert [accumulation_dtype(d) for d in ("float16", "bfloat16", "float32", "float64", "int32")] == [
        "float32", "float32", "float32", "float64", "float32",
    ]  # fmt: skip
    assert matmul(jnp.ones((2, 3), jnp.bfloat16), jnp.ones((3, 2), jnp.bfloat16)).dtype == jnp.float32
    assert weighted_sum(jnp.ones((2, 3)), jnp.ones((3, 2), jnp.bfloat16)).dtype == jnp.bfloat16


def test_a_quotient_by_zero_is_zero_with_zero_gradient():
    a, b = jnp.ones((2, 3)), jnp.array([[2.0], [0.0]])
    y, back = jax.vjp(divide, a, b)
    np.testing.assert_array_equal(y, [[0.5] * 3, [0] * 3])
    da, db = back(jnp.ones((2, 3)))
    np.testing.assert_array_equal(da, [[0.5] * 3, [0] * 3])
    np.testing.assert_array_equal(db, [[-0.75], [0]])


@pytest.mark.parametrize("size", [1e-10, 1e-25, 1e-36])
def test_small_denominators_keep_their_gradients(size):
    a, b = size * jnp.array([[1.0, 2.0]]), size * jnp.array([[4.0]])
    da, db = jax.vjp(divide, a, b)[1](jnp.ones((1, 2)))
    np.testing.assert_allclose(da * size, [[0.25, 0.25]], rtol=1e-5)
    np.testing.assert_allclose(db * size, [[-0.1875]], rtol=1e-5)


@pytest.mark.usefixtures("x64")
def test_its_gradients_agree_with_finite_differences_twice():
    b = 1 + jax.random.uniform(jax.random.key(0), (3, 1))
    given = (jax.random.normal(jax.random.key(1), (3, 2)), b)
    check_grads(lambda a, b: divide(jnp.asarray(a), jnp.asarray(b)), given, order=2)
