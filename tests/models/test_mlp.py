import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attnlab.analysis import cost
from attnlab.models.mlp import MLP
from attnlab.tasks.base.shapes import Classes, Frames, Image

from .training import filled, overfitted

SHAPE = Classes(Image(2, 3, 2), 3)
IMAGE = np.random.default_rng(0).normal(size=(2, 3, 2)).astype(np.float32)


def test_it_equals_its_equation():
    model = filled(MLP(width=4), SHAPE)
    w, b, v, c = (np.asarray(each[...]) for dense in (*model.hidden, model.head) for each in (dense.w, dense.b))
    np.testing.assert_allclose(model(jnp.asarray(IMAGE)), np.maximum(IMAGE.ravel() @ w + b, 0) @ v + c, rtol=1e-5)


def test_layers_are_of_the_width():
    like = jax.eval_shape(lambda: MLP(width=5, layers=3).create(jax.random.key(0), SHAPE))
    assert cost.parameters(like) == (12 * 5 + 5) + 2 * (5 * 5 + 5) + (5 * 3 + 3)


def test_it_computes_in_its_dtype_with_float32_outputs():
    found = filled(MLP(width=4, dtype="bfloat16"), SHAPE)(jnp.asarray(IMAGE))
    assert found.dtype == np.float32


def test_it_overfits_a_few_images():
    sources = np.random.default_rng(1).normal(size=(8, 2, 3, 2)).astype(np.float32)
    model = MLP(width=16, layers=2).create(jax.random.key(2), SHAPE)
    overfitted(model, lambda model: jax.vmap(model)(jnp.asarray(sources)), jnp.arange(8) % 3)


def test_invalid_fields_are_refused():
    with pytest.raises(ValueError, match=r"model.width=0 must be at least 1"):
        MLP(width=0)
    with pytest.raises(ValueError, match=r"model.dropout=-0.1 must be at least 0"):
        MLP(dropout=-0.1)
    with pytest.raises(ValueError, match=r"model=MLP classifies images, and this task's data are others"):
        MLP().create(jax.random.key(0), Classes(Frames(4, 9), 2))
