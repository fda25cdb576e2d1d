import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attnlab.ops.serial import serial


def plain(x, scale, key):
    """Takes a dictionary and arrays of other types, and returns a vector."""
    noise = 0 if key is None else jax.random.normal(key, (3,))
    return jnp.sin(x["a"]) * scale + x["b"] ** 2 + noise


X = {"a": np.arange(6, dtype=np.float32).reshape(2, 3), "b": np.ones((2, 3), np.float32)}
SCALE = np.array([2.0, 3.0], np.float32)


@pytest.fixture(autouse=True)
def again():
    """Permits reused keys. A gradient that recomputes its function intentionally draws the same numbers again."""
    with jax.debug_key_reuse(False):
        yield


def test_it_equals_the_function_and_its_gradient_per_lane():
    for keys in (None, jax.random.split(jax.random.key(0), 2)):
        found, expected = (
            jax.vmap(jax.value_and_grad(lambda x, s, key, f=f: f(x, s, key).sum()))(X, SCALE, keys)
            for f in (serial(plain), plain)
        )
        for a, b in zip(jax.tree.leaves(found), jax.tree.leaves(expected), strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-6)


def test_lanes_run_in_a_loop():
    program = str(jax.make_jaxpr(jax.vmap(lambda x: serial(lambda x: x * x)(x)))(SCALE))
    assert "scan" in program
    one = str(jax.make_jaxpr(lambda x: serial(lambda x: x * x)(x))(SCALE))
    assert "scan" not in one
