import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from attnlab.analysis.maps import maps
from attnlab.decoding import greedy
from attnlab.mechanisms import MECHANISMS, Linear, Softmax
from attnlab.models import Transformer
from attnlab.modules.position import POSITIONS, Rotary
from attnlab.tasks.base import Pairs

SHAPE = Pairs(12, 9, 8, 6)
SOURCE = jnp.array([3, 4, 5, 6, 0, 0])
TARGET = jnp.array([1, 4, 5, 6, 0])
KEEPS = (SOURCE != 0, TARGET != 0)
SMALL = {"width": 8, "heads": 2}


def made(**fields):
    return Transformer(**(SMALL | fields)).create(jax.random.key(0), SHAPE)


@pytest.mark.parametrize("name", MECHANISMS)
@pytest.mark.parametrize(
    "fields", [{}, {"norm_first": False, "norm": "rms"}, {"tied": True, "activation": "swiglu"}], ids=str
)
def test_decoding_step_by_step_equals_teacher_forcing(name, fields):
    model = made(mechanism=MECHANISMS[name], **fields)
    forced = jax.jit(lambda model: model(SOURCE, TARGET, *KEEPS))(model)
    state, scores = model.start(SOURCE, KEEPS[0], 5), []
    step = jax.jit(lambda model, state, token: model.step(state, token))
    for token in TARGET:
        score, state = step(model, state, token)
        scores.append(score)
    np.testing.assert_allclose(jnp.stack(scores)[:4], forced[:4], atol=1e-5)


@pytest.mark.parametrize("position", POSITIONS)
def test_padding_of_the_source_changes_nothing(position):
    model = made(position=POSITIONS[position])
    run = jax.jit(lambda model, source: model(source, TARGET, source != 0, TARGET != 0))
    np.testing.assert_allclose(run(model, SOURCE), run(model, SOURCE[:4]), atol=1e-5)


def test_no_target_symbol_reaches_an_earlier_score():
    model = made()
    run = jax.jit(lambda target: model(SOURCE, target, KEEPS[0], jnp.ones(5, bool)))
    changed = run(TARGET.at[3].set(8))
    np.testing.assert_array_equal(changed[:3], run(TARGET)[:3])
    assert np.abs(changed[3:] - run(TARGET)[3:]).max() > 1e-3


def test_each_attention_may_have_its_own_mechanism():
    config = Transformer(**SMALL, mechanism=Softmax(), cross=Linear())
    assert config.attentions == {"encoder": Softmax(), "decoder": Softmax(), "cross": Linear()}
    run = lambda model: model(SOURCE, TARGET, *KEEPS)
    same = made()
    assert np.abs(run(made(cross=Linear())) - run(same)).max() > 1e-4
    # The shared parameters start alike, so that variants pair by seed.
    for a, b in zip(jax.tree.leaves(made(cross=Linear())), jax.tree.leaves(same), strict=True):
        np.testing.assert_array_equal(a, b)


def test_half_precision_computes_and_scores_in_single():
    scores = made(dtype="bfloat16")(SOURCE, TARGET, *KEEPS)
    assert scores.dtype == jnp.float32
    np.testing.assert_allclose(scores, made()(SOURCE, TARGET, *KEEPS), atol=0.15)


def test_dropout_differs_by_its_key_and_uses_no_key_twice():
    model = made(dropout=0.5)
    run = jax.jit(lambda key: model(SOURCE, TARGET, *KEEPS, key=key))
    one, other = run(jax.random.key(1)), run(jax.random.key(2))
    assert np.abs(one - other).max() > 0.01


def test_its_maps_are_those_of_each_layer_and_head():
    config = Transformer(**SMALL, layers=3)
    seen = maps(config, config.create(jax.random.key(0), SHAPE), SHAPE, SOURCE, TARGET, *KEEPS)
    assert {name: map_.shape for name, map_ in seen.items()} == {
        "encoder": (3, 2, 6, 6), "decoder": (3, 2, 5, 5), "cross": (3, 2, 5, 6),
    }  # fmt: skip
    np.testing.assert_allclose(seen["cross"].sum(axis=-1), np.ones((3, 2, 5)), atol=1e-5)
    assert not seen["cross"][..., 4:].any()


@pytest.mark.parametrize("name", MECHANISMS)
def test_two_layers_overfit_eight_sequences_and_greedy_decoding_is_the_argmax_of_teacher_forcing(name):
    model = made(width=32, mechanism=MECHANISMS[name])
    sources = jax.random.randint(jax.random.key(1), (8, 5), 3, 12)
    answers = jnp.concatenate([jax.random.randint(jax.random.key(2), (8, 4), 3, 9), jnp.full((8, 1), 2)], axis=1)
    given = jnp.concatenate([jnp.ones((8, 1), jnp.int32), answers[:, :-1]], axis=1)
    ones = jnp.ones(5, bool)
    forced = lambda model: jax.vmap(lambda s, t: model(s, t, ones, ones))(sources, given)
    loss = lambda model: optax.softmax_cross_entropy_with_integer_labels(forced(model), answers).mean()
    adam = optax.adam(1e-2)

    @jax.jit
    def train(model):
        def step(carry, _):
            model, memory = carry
            value, gradient = jax.value_and_grad(loss)(model)
            change, memory = adam.update(gradient, memory)
            return (optax.apply_updates(model, change), memory), value

        return jax.lax.scan(step, (model, adam.init(model)), length=150)

    with jax.numpy_dtype_promotion("standard"):  # optax promotes
        (model, _), losses = train(model)
    assert losses[-1] < 0.02 < losses[0]
    decode = jax.jit(jax.vmap(lambda s: greedy(model.step, model.start(s, ones, 5), 1, 2, 5)))
    np.testing.assert_array_equal(decode(sources), answers)


@pytest.mark.parametrize(
    ("fields", "line"),
    [
        ({"heads": 3}, "model.heads=3 must divide model.width=8"),
        ({"width": 0}, "model.width=0"),
        ({"dropout": 1.0}, "model.dropout=1.0"),
        ({"feedforward": 0}, "model.feedforward=0"),
        ({"position": Rotary(), "mechanism": Linear()}, "model.position=Rotary"),
        ({"position": Rotary(), "width": 6}, "must be even"),
    ],
)
def test_what_cannot_work_is_refused_when_it_is_built(fields, line):
    with pytest.raises(ValueError, match=line):
        Transformer(**(SMALL | fields))
