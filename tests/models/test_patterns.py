"""Checks patterns of mechanisms: hybrid models are stacks whose layers have different mechanisms."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attnlab.analysis.maps import attention_maps
from attnlab.lab.study import Experiment, Study, over, serialize
from attnlab.lab.study.overrides import apply
from attnlab.lab.study.values import text
from attnlab.mechanisms import MECHANISMS
from attnlab.models import MODELS, Classifier, Language, Transformer
from attnlab.modules.position import Position
from attnlab.modules.stack import unstack_layers
from attnlab.pattern import Pattern, read_pattern
from attnlab.tasks.base.shapes import Classes, Pairs, Tokens
from attnlab.tasks.synthetic.recall import Recall
from attnlab.training.config import Train

from .training import filled

HYBRID = read_pattern("gated-delta*2+softmax", "MECHANISMS", "model.mechanism")
TOKENS = jnp.arange(7) % 5


def language(**fields):
    return Language(width=8, heads=2, position=Position(), **({"mechanism": HYBRID, "layers": 6} | fields))


def made(**fields):
    return filled(language(**fields), Tokens(5, 12))


@jax.jit
def whole(model, tokens):
    return model(tokens)


@jax.jit
def by_hand(model, tokens):
    """Applies the layers one after the other, without a scan."""
    x = model.embed(model.target, tokens, model.target_position, np.arange(len(tokens)), None, None)
    for layer in unstack_layers(model.decoder):
        x, _ = layer(x, None, model.target_position)
    return model.logits(model.decoded(x))


def test_a_pattern_is_written_as_it_is_read():
    assert Pattern((MECHANISMS["gated-delta"],) * 2 + (MECHANISMS["softmax"],)) == HYBRID
    assert str(HYBRID) == text(HYBRID) == "gated-delta*2+softmax"
    assert read_pattern("gated-delta*2 + softmax", "MECHANISMS", "x") == HYBRID
    assert read_pattern("linear", "MECHANISMS", "x") == Pattern((MECHANISMS["linear"],))
    config = Language(width=8, heads=2, layers=6, mechanism=HYBRID)
    assert serialize.read(serialize.write(config), Language) == config


def test_layers_have_the_mechanisms_of_the_pattern_in_turn():
    layers = unstack_layers(made().decoder)
    assert [layer.attention.mechanism for layer in layers] == [*HYBRID.entries, *HYBRID.entries]


@pytest.mark.parametrize("layers", [3, 9])  # unrolled, and in a loop
@pytest.mark.parametrize("remat", [False, True])
def test_the_scan_over_periods_is_the_layers_one_by_one(layers, remat):
    model = made(layers=layers, remat=remat)
    np.testing.assert_allclose(whole(model, TOKENS), by_hand(model, TOKENS), atol=1e-5)


def test_decoding_step_by_step_equals_the_whole():
    model = made()
    state, found = model.start(len(TOKENS)), []
    step = jax.jit(lambda model, state, token: model.step(state, token))
    for token in TOKENS:
        logits, state = step(model, state, token)
        found.append(logits)
    np.testing.assert_allclose(np.stack(found), whole(model, TOKENS), atol=1e-5)


def test_a_pattern_of_one_mechanism_is_that_mechanism_with_the_same_parameters():
    twice = Pattern((MECHANISMS["linear"],) * 2)
    both = (language(mechanism=mechanism, layers=4) for mechanism in (twice, MECHANISMS["linear"]))
    created = lambda config: jax.jit(lambda: config.create(jax.random.key(0), Tokens(5, 12))(TOKENS))()
    np.testing.assert_allclose(*map(created, both), atol=1e-5)


def test_maps_of_all_layers_are_in_their_order():
    model = made()
    maps = attention_maps(model, TOKENS)["decoder"]
    assert maps.shape == (6, 2, 7, 7)
    rows = np.asarray(maps.sum(axis=-1))
    softmax = [2, 5]
    np.testing.assert_allclose(rows[softmax], 1, atol=1e-5)
    assert np.abs(np.delete(rows, softmax, axis=0) - 1).min() > 1e-3


def test_every_layer_has_gradients():
    slopes = jax.jit(jax.grad(lambda model: jnp.sum(model(TOKENS) ** 2)))(made())
    for layer in unstack_layers(slopes.decoder):
        assert all(np.any(np.asarray(leaf)) for leaf in jax.tree.leaves((layer.attention.q, layer.attention.v)))


def test_encoders_and_encoder_decoders_have_patterns_too():
    both = read_pattern("bidirectional+softmax", "MECHANISMS", "x")
    config = Transformer(
        width=8,
        heads=2,
        layers=4,
        position=Position(),
        encoder=both,
        decoder=read_pattern("retention+softmax", "MECHANISMS", "x"),
    )
    model = config.create(jax.random.key(0), Pairs(5, 5, 7, 7))
    keep = jnp.ones(7, bool)
    assert np.isfinite(model(TOKENS, TOKENS, keep, keep)).all()
    state, found = model.start(TOKENS, keep, len(TOKENS)), []
    for token in TOKENS:
        logits, state = model.step(state, token)
        found.append(logits)
    np.testing.assert_allclose(jnp.stack(found), model(TOKENS, TOKENS, keep, keep), atol=1e-5)
    classifier = Classifier(width=8, heads=2, layers=2, position=Position(), mechanism=both)
    network = classifier.create(jax.random.key(0), Classes(Tokens(5, 7), 3))
    assert network(TOKENS, keep).shape == (3,)


@pytest.mark.parametrize(
    ("given", "line"),
    [
        ("gated-delta*3+sofmax", "model.mechanism='sofmax' is not known; nearest: 'softmax'"),
        ("gated-delta*x+softmax", "model.mechanism='gated-delta*x+softmax': expected a whole number in 1 … 1024"),
        ("softmax*0", "model.mechanism='softmax*0': expected a whole number in 1 … 1024"),
        ("3*gated-delta", "model.mechanism='3*gated-delta': the number stands behind the name: gated-delta*3"),
        ("softmax+", "model.mechanism='' is not known"),
    ],
)
def test_invalid_patterns_are_refused_in_one_line(given, line):
    with pytest.raises(ValueError, match=f"^{line.replace('*', '[*]').replace('+', '[+]')}"):
        read_pattern(given, "MECHANISMS", "model.mechanism")


@pytest.mark.parametrize(
    ("fields", "line"),
    [
        ({"layers": 4}, "model.mechanism=gated-delta*2+softmax has 3 layers, which must divide model.layers=4"),
        (
            {"mechanism": read_pattern("softmax+nystrom", "MECHANISMS", "x")},
            "model.mechanism=Nystrom(.*) has no causal form",
        ),
    ],
)
def test_a_pattern_that_does_not_fit_is_refused(fields, line):
    with pytest.raises(ValueError, match=f"^{line.replace('delta*', 'delta[*]').replace('+', '[+]')}"):
        language(**fields)


def test_both_directions_are_refused_where_another_sequence_is_read():
    both = MECHANISMS["bidirectional"]
    with pytest.raises(ValueError, match=r"^model.cross=.* attends from a sequence to itself only"):
        Transformer(width=8, heads=2, cross=both)
    with pytest.raises(ValueError, match=r"^model.mechanism=.* attends from a sequence to itself only"):
        MODELS["luong"].__class__(attention="luong", mechanism=both)


def test_overrides_set_patterns_and_name_the_variant_by_them():
    study = Study(
        Experiment(Recall(), Language(layers=4, position=Position()), Train(steps=1)),
        over("model.mechanism", softmax=MECHANISMS["softmax"], linear=MECHANISMS["linear"]),
        name="hybrid",
    )
    overrides = ["model.mechanism=gated-delta*3+softmax", "model.position=none*3+rotary", "model.attention=gated*2"]
    ((name, found),) = apply(study, [*overrides, "model.norm_output=true"]).variants().items()
    assert name == "gated-delta-x3+softmax"
    assert [text(value) for value in (found.model.mechanism, found.model.position, found.model.attention)] == [
        "gated-delta*3+softmax",
        "none*3+rotary",
        "gated*2",
    ]
    assert serialize.read(serialize.write(found)) == found
    assert {each.model.attention.gate for each in apply(study, ["model.attention.gate=head"]).variants().values()} == {
        "head"
    }
    other = apply(study, ["model=gated-deltanet"])
    assert "with model=gated-deltanet the variants still set model.mechanism" in other.notes
    with pytest.raises(ValueError, match=r"^model.attention='gatd' is not known; nearest: 'gated'"):
        apply(study, ["model.attention=gatd*2"])
