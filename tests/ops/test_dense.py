"""Checks that `flat_matmul` is x @ w in every order of transformations, and flat where only rows are batched."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.test_util import check_grads

from attnlab.analysis.cost import operations
from attnlab.ops.dense import flat_matmul

B, T, D, F, N = 3, 4, 5, 6, 2
DRAW = np.random.default_rng(0).normal
X, W, XS, WS, LANES = (DRAW(size=size) for size in [(T, D), (D, F), (B, T, D), (N, D, F), (N, B, T, D)])

FLOATS = jnp.asarray(XS, jnp.float32), jnp.asarray(W, jnp.float32)


def loss(product):
    """Returns a function that is not linear in either argument, so that gradients depend on both."""
    return lambda x, w: jnp.sum(jnp.sin(product(x, w)))


def batched(product):
    return lambda xs, w: jnp.sum(jnp.sin(jax.vmap(product, (0, None))(xs, w)))


ORDERS = {
    "value": lambda f, x, w, xs, ws, lanes: f(x, w),
    "gradient": lambda f, x, w, xs, ws, lanes: jax.grad(loss(f), (0, 1))(x, w),
    "gradient of a batch": lambda f, x, w, xs, ws, lanes: jax.grad(batched(f), (0, 1))(xs, w),
    "a gradient an example": lambda f, x, w, xs, ws, lanes: jax.vmap(jax.grad(loss(f), (0, 1)), (0, None))(xs, w),
    "lanes": lambda f, x, w, xs, ws, lanes: jax.vmap(jax.grad(batched(f), (0, 1)))(lanes, ws),
    "weights alone batched": lambda f, x, w, xs, ws, lanes: jax.vmap(f, (None, 0))(x, ws),
    "another axis": lambda f, x, w, xs, ws, lanes: jax.vmap(f, (2, None), 1)(xs.transpose(1, 2, 0), w),
    "second derivative": lambda f, x, w, xs, ws, lanes: jax.hessian(loss(f), 1)(x, w),
    "remat in a scan": lambda f, x, w, xs, ws, lanes: jax.grad(
        lambda w: jax.lax.scan(jax.checkpoint(lambda s, x: (jnp.sin(s + f(x, w)), None)), f(x, w), xs)[0].sum()
    )(w),
    "forward mode": lambda f, x, w, xs, ws, lanes: jax.jvp(batched(f), (xs, w), (jnp.ones_like(xs), jnp.ones_like(w))),
}  # fmt: skip


@pytest.mark.parametrize("order", ORDERS.values(), ids=ORDERS)
def test_it_is_the_matrix_product_in_every_order(order, x64):
    arrays = [jnp.asarray(array) for array in (X, W, XS, WS, LANES)]
    ours, expected = (jax.tree.leaves(order(f, *arrays)) for f in (flat_matmul, jnp.matmul))
    for one, other in zip(ours, expected, strict=True):
        assert one.shape == other.shape
        np.testing.assert_allclose(one, other, rtol=0, atol=1e-12)


def test_gradients_against_finite_differences(x64):
    check_grads(lambda xs, w: batched(flat_matmul)(jnp.asarray(xs), jnp.asarray(w)), (XS, W), order=2)


def test_the_weights_gradient_of_a_batch_is_one_flat_product():
    """No product has three axes, for which XLA would copy the activations first."""
    products = [op for op in operations(jax.grad(batched(flat_matmul), (0, 1)), *FLOATS) if op.name == "dot_general"]
    assert sorted(op.sizes for op in products) == sorted([(1, D, B * T, F), (1, B * T, F, D), (1, B * T, D, F)])


@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "float32"])
def test_output_has_the_dtype_of_the_arguments(dtype):
    x, w = jnp.asarray(X, dtype), jnp.asarray(W, dtype)
    assert flat_matmul(x, w).dtype == dtype
    assert jax.jit(jax.grad(lambda w: flat_matmul(x, w).sum()))(w).dtype == dtype
