import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attnlab.mechanisms import Linear, Softmax
from attnlab.models.classifier import Classifier
from attnlab.models.encoder import Encoder
from attnlab.modules.position import POSITIONS, Floater, Learned, Position, Rotary, Sinusoidal

from .training import filled


class Made:
    """Wraps an encoder as a config for `filled`."""

    def __init__(self, config, length):
        self.config, self.length = config, length

    def create(self, key, shape):
        return Encoder(key, self.config, self.length)


def made(length=6, **fields):
    return filled(Made(Classifier(width=8, heads=2, **fields), length), None)


X = np.random.default_rng(3).standard_normal((6, 8)).astype(np.float32)
FIRST = np.linspace(-1, 1, 8, dtype=np.float32)
read = jax.jit(lambda model, x, keep, first: model(x, keep, None, first)[0])


def test_without_padding_nothing_is_padding():
    model = made()
    np.testing.assert_allclose(read(model, X, None, None), read(model, X, np.ones(6, bool), None), rtol=2e-5, atol=2e-6)


@pytest.mark.parametrize("mechanism", [Softmax(), Linear()], ids=str)
def test_padding_has_no_effect(mechanism):
    model, keep = made(mechanism=mechanism), np.arange(6) < 4
    spoilt = np.where(keep[:, None], X, np.float32(9))
    a, b = (read(model, x, keep, FIRST) for x in (X, spoilt))
    kept = np.append(True, keep)
    np.testing.assert_array_equal(a[kept], b[kept])


def test_the_class_token_has_no_position_and_is_attended_to():
    # Without positions, the class token is treated as the first of seven tokens.
    plain = made(7, position=Position())
    whole = read(plain, np.concatenate([FIRST[None], X]), None, None)
    np.testing.assert_allclose(read(plain, X, None, FIRST), whole, rtol=2e-5, atol=2e-6)
    # With positions, the words keep theirs, and nothing is added to the class token.
    for position in (Sinusoidal(), Rotary(), Floater()):
        told = made(7, position=position)
        a, b = read(told, X, None, FIRST), read(told, X, None, FIRST[::-1])
        assert a.shape == (7, 8)
        assert np.abs(a - b)[1:].max() > 1e-4
        if not position.rotary:
            first_of = read(told, np.concatenate([FIRST[None], X]), None, None)
            assert np.abs(a - first_of)[0].max() > 1e-4


@pytest.mark.parametrize("name", POSITIONS)
def test_the_amount_of_padding_has_no_effect(name):
    model = made(40, position=POSITIONS[name])
    narrow, wide = (
        read(model, np.pad(X[:5], ((0, width - 5), (0, 0))), np.arange(width) < 5, FIRST) for width in (8, 40)
    )
    np.testing.assert_allclose(narrow[:6], wide[:6], rtol=2e-5, atol=2e-6)


def test_positions_shorter_than_the_input_are_refused():
    with pytest.raises(ValueError, match=r"model.position=.* supports 4 positions, but a sequence has 6"):
        Encoder(jax.random.key(0), Classifier(width=8, heads=2, position=Learned(length=4)), 6)


def test_dropout_takes_a_key_and_remat_changes_nothing():
    model = made(dropout=0.5)
    keys = jax.random.split(jax.random.key(1))
    drawn = jax.jit(lambda model, key: model(jnp.asarray(X), None, key)[0])
    a, b = (drawn(model, key) for key in keys)
    assert np.abs(a - b).max() > 1e-3
    total = lambda model: jnp.sum(model(jnp.asarray(X))[0][:, 0] ** 2)
    plain, again = (jax.jit(jax.grad(total))(made(remat=remat)) for remat in (False, True))
    for left, right in zip(jax.tree.leaves(plain), jax.tree.leaves(again), strict=True):
        np.testing.assert_allclose(left, right, rtol=1e-4, atol=1e-5)
