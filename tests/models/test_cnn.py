from itertools import pairwise

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attnlab.analysis import cost
from attnlab.models.cnn import CNN
from attnlab.tasks.base.shapes import Classes, Image, Tokens

from .training import filled, overfitted

SHAPE = Classes(Image(6, 5, 2), 3)
scores = jax.jit(lambda model, image, key: model(image, key=key))


def test_the_default_has_fewer_than_a_hundred_thousand_parameters():
    like = jax.eval_shape(lambda: CNN().create(jax.random.key(0), Classes(Image(28, 28, 1), 10)))
    w = CNN().width // 4
    widths = [1, w, 2 * w, 4 * w]
    halving = sum(9 * a * b + b for a, b in pairwise(widths))
    residual = sum(2 * a + 9 * a * a + a for a in widths[1:])
    assert cost.parameters(like) == halving + residual + 8 * w + (4 * 4 * 4 * w * 10 + 10) < 100_000


def test_every_scale_halves_the_sides_and_doubles_the_channels_rounded_up():
    model = filled(CNN(width=7, scales=2, layers=2), SHAPE)
    x, shapes = jnp.zeros((6, 5, 2)), []
    for layer in model.layers:
        x = layer(x)
        shapes.append(x.shape)
    assert shapes == [(3, 3, 4)] * 3 + [(2, 2, 7)] * 3


def test_convolutions_are_equivariant_and_the_head_is_not():
    # With two scales, a step of four pixels is a step of one position in the last scale.
    model = filled(CNN(width=8, layers=1, kernel=1, scales=2), Classes(Image(16, 16, 1), 3))
    image = 3 * np.random.default_rng(0).normal(size=(16, 16, 1)).astype(np.float32)

    def last(image):
        x = jnp.asarray(image)
        for layer in model.layers:
            x = layer(x)
        return x

    moved = np.roll(image, (4, 8), (0, 1))
    np.testing.assert_allclose(last(moved), np.roll(last(image), (1, 2), (0, 1)), rtol=1e-4, atol=1e-5)
    assert np.abs(scores(model, image, None) - scores(model, moved, None)).max() > 1e-3


def test_dropout_takes_a_key():
    model = filled(CNN(width=8, scales=2, dropout=0.5), SHAPE)
    image = np.random.default_rng(0).normal(size=(6, 5, 2)).astype(np.float32)
    a, b = (scores(model, image, jax.random.key(n)) for n in range(2))
    assert np.abs(a - b).max() > 1e-3


def test_it_overfits_a_few_images():
    sources = np.random.default_rng(1).normal(size=(8, 6, 5, 2)).astype(np.float32)
    model = CNN(width=16, scales=2).create(jax.random.key(2), SHAPE)
    overfitted(model, lambda model: jax.vmap(model)(jnp.asarray(sources)), jnp.arange(8) % 3)


def test_invalid_fields_are_refused():
    for field in ("width", "layers", "kernel", "scales"):
        with pytest.raises(ValueError, match=rf"model.{field}=0 must be at least 1"):
            CNN(**{field: 0})
    with pytest.raises(ValueError, match=r"model.dropout=1.0 must be at least 0 and below 1"):
        CNN(dropout=1.0)
    with pytest.raises(ValueError, match=r"model.scales=3 halves images of 6 × 5 to less than one pixel"):
        CNN(scales=3).create(jax.random.key(0), SHAPE)
    with pytest.raises(ValueError, match=r"model=CNN classifies images, and this task's data are others"):
        CNN().create(jax.random.key(0), Classes(Tokens(9, 9), 2))
    with pytest.raises(ValueError, match=r"model=CNN needs data with source, classes"):
        CNN().create(jax.random.key(0), Tokens(9, 9))
