import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attnlab.models.recurrent import RecurrentLanguage
from attnlab.tasks.base.shapes import Pairs, Tokens

from .training import filled, overfitted

SHAPE = Tokens(17, 8)
TOKENS = jnp.array([9, 4, 5, 6, 0])
SMALL = {"width": 6, "layers": 2}


@jax.jit
def forms(model):
    """Returns the parallel form with two contents of the padding, and decoding token by token."""
    whole = jax.vmap(lambda tokens: model(tokens, TOKENS != 0))(jnp.stack([TOKENS, TOKENS.at[4].set(7)]))
    step = lambda state, token: model.step(state, token)[::-1]
    return whole, jax.lax.scan(step, model.start(len(TOKENS)), TOKENS)[1]


@pytest.mark.parametrize("cell", ["rnn", "gru", "lstm", "rg-lru"])
def test_token_by_token_equals_the_whole_and_padding_changes_nothing(cell):
    whole, steps = forms(filled(RecurrentLanguage(**SMALL, cell=cell), SHAPE))
    assert whole.shape == (2, 5, 17)
    np.testing.assert_allclose(steps[:4], whole[0, :4], atol=1e-5)
    np.testing.assert_array_equal(whole[1], whole[0])


def test_an_elman_layer_equals_its_equation():
    """Computes h_t = tanh(x_t W + b + h_{t−1} U), with linear logits."""
    model = filled(RecurrentLanguage(width=3, layers=1, cell="rnn"), SHAPE)
    value = lambda x: np.asarray(x[...], np.float64)
    ((layer,),) = model.layers.layers
    h, expected = np.zeros(3), []
    for token in TOKENS:
        x = value(model.embed.table)[token] * 3**0.5
        h = np.tanh(x @ value(layer.w) + value(layer.b) + h @ value(layer.u))
        expected.append(h @ value(model.output.w) + value(model.output.b))
    got = model(TOKENS, jnp.ones(5, bool))
    np.testing.assert_allclose(got, expected, atol=1e-5)


def test_no_token_reaches_an_earlier_score_and_every_one_a_later():
    model = filled(RecurrentLanguage(**SMALL), SHAPE)
    run = jax.jit(lambda tokens: model(tokens, jnp.ones(5, bool)))
    one, other = run(TOKENS), run(TOKENS.at[1].set(8))
    np.testing.assert_array_equal(other[:1], one[:1])
    assert (np.abs(other[1:] - one[1:]).max(axis=1) > 1e-6).all()


def test_it_overfits_eight_sequences():
    config = RecurrentLanguage(width=16, layers=1)
    model = jax.jit(lambda: config.create(jax.random.key(0), SHAPE))()
    answers = jax.random.randint(jax.random.key(2), (8, 5), 3, 9)
    given = jnp.concatenate([jnp.arange(9, 17)[:, None], answers[:, :-1]], axis=1)
    overfitted(model, lambda model: jax.vmap(lambda tokens: model(tokens, jnp.ones(5, bool)))(given), answers)


def test_its_state_does_not_grow_and_dropout_needs_a_key():
    model = filled(RecurrentLanguage(**SMALL, dropout=0.5), SHAPE)
    sizes = [sum(x.size for x in jax.tree.leaves(model.start(length))) for length in (1, 1000)]
    assert sizes == [12, 12]
    run = jax.jit(lambda key: model(TOKENS, TOKENS != 0, key))
    assert np.abs(run(jax.random.key(1)) - run(jax.random.key(2))).max() > 1e-3
    np.testing.assert_array_equal(run(None), run(None))


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"width": 0}, "model.width=0 must be at least 1"),
        ({"dropout": 1.0}, "model.dropout=1.0 must be"),
    ],
)
def test_invalid_values_name_the_field(fields, words):
    with pytest.raises(ValueError, match=words):
        RecurrentLanguage(**fields)


@pytest.mark.parametrize(
    ("field", "line"),
    [
        ("cell", "model.cell='other' must be one of rnn, gru, lstm, rg-lru"),
        ("dtype", "model.dtype='other' must be one of float32, bfloat16, float16, float64"),
    ],
)
def test_unknown_values_are_refused(field, line):
    config = RecurrentLanguage()
    # Bypasses the constructor, whose types are checked in tests but not elsewhere.
    object.__setattr__(config, field, "other")
    with pytest.raises(ValueError, match=line):
        config.__post_init__()


def test_the_data_of_another_model_are_refused():
    with pytest.raises(ValueError, match=r"^model=RecurrentLanguage needs data with vocabulary, length"):
        RecurrentLanguage().create(jax.random.key(0), Pairs(9, 9, 5, 5))
