from dataclasses import dataclass, replace
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attnlab.analysis.maps import attention_maps
from attnlab.decoding import greedy
from attnlab.mechanisms import MECHANISMS, Linear, Mechanism, Recurrent, Softmax, Traits, Wrapper
from attnlab.models import Transformer
from attnlab.modules.position import POSITIONS, T5, ALiBi, Floater, Learned, Rotary, Shaw, XPos
from attnlab.tasks.base.shapes import Pairs

from .kinds import one_of_each
from .training import filled, overfitted

SHAPE = Pairs(12, 9, 8, 6)
SOURCE = jnp.array([3, 4, 5, 6, 0, 0])
TARGET = jnp.array([1, 4, 5, 6, 0])
KEEPS = (SOURCE != 0, TARGET != 0)
SMALL = {"width": 8, "heads": 2}


def made(**fields):
    return filled(Transformer(**(SMALL | fields)), SHAPE)


@partial(jax.jit, static_argnums=0)
def created(config):
    """Returns a model with its initial values."""
    return config.create(jax.random.key(0), SHAPE)


def with_one(mechanism):
    """Returns the fields that use a mechanism in every attention that supports it, and softmax elsewhere."""
    fits = {
        "encoder": mechanism.traits.non_causal,
        "decoder": mechanism.traits.decodes,
        "cross": mechanism.traits.non_causal and mechanism.traits.row_independent and not mechanism.traits.self_only,
    }
    return {name: mechanism if fit else Softmax() for name, fit in fits.items()}


@jax.jit
def scores(model, *given):
    return model(*given)


@jax.jit
def step_by_step(model, source, keep, target):
    state = model.start(source, keep, len(target))
    return jax.lax.scan(lambda state, token: model.step(state, token)[::-1], state, target)[1]


@jax.jit
def gradients(model):
    return jax.grad(lambda model: jnp.sum(model(SOURCE, TARGET, *KEEPS)[:4] ** 2))(model)


@jax.jit
def both(model):
    """Returns teacher forcing with two contents of the padding, and decoding step by step."""
    sources, targets = jnp.stack([SOURCE, SOURCE.at[4:].set(9)]), jnp.stack([TARGET, TARGET.at[4:].set(8)])
    forced = jax.vmap(lambda source, target: model(source, target, *KEEPS))(sources, targets)
    return forced, step_by_step(model, SOURCE, KEEPS[0], TARGET)


@pytest.mark.parametrize("name", one_of_each())
def test_decoding_step_by_step_equals_teacher_forcing_and_padding_changes_nothing(name):
    mechanism = MECHANISMS[name].with_length(8)
    forced, steps = both(made(**with_one(mechanism)))
    np.testing.assert_allclose(steps[:4], forced[0, :4], atol=1e-5)
    np.testing.assert_allclose(forced[1, :4], forced[0, :4], atol=1e-5)


@pytest.mark.parametrize(
    "fields",
    [
        {"norm_first": False, "norm": "rms", "key_heads": 1},
        {"tied": True, "activation": "swiglu", "biases": False, "initialiser": "kaiming", "mechanism": Linear()},
    ],
    ids=str,
)
def test_decoding_equals_teacher_forcing_with_other_layers(fields):
    forced, steps = both(made(**fields))
    np.testing.assert_allclose(steps[:4], forced[0, :4], atol=1e-5)


# Other positions do the same on both sides: the tests of the attention and of the language model cover them.
@pytest.mark.parametrize("name", ["learned", "shaw", "t5", "xpos", "floater"])
def test_decoding_equals_teacher_forcing_with_learned_and_one_sided_positions(name):
    forced, steps = both(made(position=POSITIONS[name]))
    np.testing.assert_allclose(steps[:4], forced[0, :4], atol=1e-5)
    np.testing.assert_allclose(forced[1, :4], forced[0, :4], atol=1e-5)


@pytest.mark.parametrize("name", POSITIONS)
def test_every_position_works_in_every_precision(name):
    for dtype in ("float32", "bfloat16"):
        config = Transformer(**SMALL, position=POSITIONS[name], dtype=dtype)
        model = jax.eval_shape(lambda config=config: config.create(jax.random.key(0), SHAPE))
        shapes = [leaf.dtype for leaf in jax.tree.leaves(jax.eval_shape(both, model))]
        assert set(shapes) == {jnp.dtype("float32")}


def test_padding_of_the_source_has_no_effect():
    model = made()
    short = scores(model, SOURCE[:4], TARGET, SOURCE[:4] != 0, TARGET != 0)
    np.testing.assert_allclose(short[:4], scores(model, SOURCE, TARGET, *KEEPS)[:4], atol=1e-5)


def test_encoder_and_decoder_have_positions_of_their_own_and_layers_share_them():
    # Vectors of Shaw and numbers of T5: one set for each half of the network, and none for each layer.
    for position, leaves, numbers in ((Shaw(clip=2), 2, 2 * 5 * 4), (T5(), 1, 2 * 32), (Learned(9), 1, 9 * 8)):
        model = made(layers=3, position=position)
        one, other = (jax.tree.leaves(half) for half in (model.source_position, model.target_position))
        assert len(one) == len(other) == leaves
        assert one[0].size == other[0].size == numbers
        assert np.abs(one[0] - other[0]).max() > 0.01


@pytest.mark.parametrize("position", [Shaw(), T5(), Learned(), Floater()], ids=str)
def test_parameters_of_positions_have_gradients(position):
    model = made(position=position, layers=1)
    gradient = gradients(model)
    for half in (gradient.source_position, gradient.target_position):
        for leaf in jax.tree.leaves(half):
            assert np.isfinite(leaf).all()
            assert np.abs(leaf).max() > 1e-6


def test_the_path_of_floater_is_stored_in_the_decoding_state():
    model = made(position=Floater())
    state = jax.eval_shape(lambda: model.start(SOURCE, KEEPS[0], 5))
    assert state.table.shape == (2, 5, 8)
    assert jax.eval_shape(lambda: made(position=Learned()).start(SOURCE, KEEPS[0], 5)).table is None


def test_a_sequence_beyond_a_learned_table_is_refused_if_its_length_is_known():
    config = Transformer(**SMALL, position=Learned(length=8))
    model = filled(config, SHAPE)
    line = r"model.position=Learned\(length=8, .*\) supports 8 positions, but a sequence has 9"
    long = jnp.ones(9, jnp.int32)
    with pytest.raises(ValueError, match=line):
        config.create(jax.random.key(0), Pairs(12, 9, 9, 6))
    with pytest.raises(ValueError, match=line):
        model(long, TARGET, long > 0, TARGET > 0)
    with pytest.raises(ValueError, match=line):
        jax.eval_shape(lambda: model(SOURCE, long, SOURCE > 0, long > 0))
    with pytest.raises(ValueError, match=line):
        model.start(SOURCE, KEEPS[0], 9)
    # A traced loop cannot raise an error, and it does not clamp the position.
    last = step_by_step(model, SOURCE, KEEPS[0], jnp.ones(8, jnp.int32))
    assert np.isfinite(last).all()
    state = replace(model.start(SOURCE, KEEPS[0], 8), i=jnp.asarray(8, jnp.int32))
    beyond, _ = jax.jit(lambda state: model.step(state, TARGET[0]))(state)
    assert np.isnan(beyond).all()


def test_no_target_symbol_reaches_an_earlier_score():
    model = made()
    ones = jnp.ones(5, bool)
    one, other = (scores(model, SOURCE, target, KEEPS[0], ones) for target in (TARGET, TARGET.at[3].set(8)))
    np.testing.assert_array_equal(other[:3], one[:3])
    assert np.abs(other[3:] - one[3:]).max() > 1e-3


def test_each_attention_may_have_its_own_mechanism():
    config = Transformer(**SMALL, mechanism=Softmax(), cross=Linear())
    assert config.attentions == {"encoder": Softmax(), "decoder": Softmax(), "cross": Linear()}
    same, other = created(Transformer(**SMALL)), created(config)
    assert np.abs(scores(other, SOURCE, TARGET, *KEEPS) - scores(same, SOURCE, TARGET, *KEEPS)).max() > 1e-4
    # The shared parameters have equal initial values, so that variants pair by seed.
    for a, b in zip(jax.tree.leaves(other), jax.tree.leaves(same), strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("name", ["gated-linear", "kda", "ssd", "rebased", "hedgehog", "short-convolution"])
def test_parameters_of_a_mechanism_do_not_change_other_initial_values(name):
    """The gates, projections and filters of a mechanism use no random draw of the parameters that all variants have."""
    plain, other = created(Transformer(**SMALL)), created(Transformer(**SMALL, **with_one(MECHANISMS[name])))
    by_path = lambda model: {jax.tree_util.keystr(at): x for at, x in jax.tree_util.tree_leaves_with_path(model)}
    all_have, has = by_path(plain), by_path(other)
    assert has.keys() > all_have.keys()
    for path, values in all_have.items():
        np.testing.assert_array_equal(has[path], values, err_msg=path)


def test_half_precision_computes_logits_in_float32():
    half = scores(made(dtype="bfloat16"), SOURCE, TARGET, *KEEPS)
    assert half.dtype == jnp.float32
    np.testing.assert_allclose(half[:4], scores(made(), SOURCE, TARGET, *KEEPS)[:4], atol=0.15)


def test_dropout_differs_by_its_key_and_uses_no_key_twice():
    model = made(dropout=0.5)
    one, other = (scores(model, SOURCE, TARGET, *KEEPS, jax.random.key(n)) for n in (1, 2))
    assert np.abs(one - other).max() > 0.01


@pytest.mark.parametrize("key_heads", [2, 1])
def test_its_maps_are_those_of_each_layer_and_head(key_heads):
    config = Transformer(**SMALL, layers=3, key_heads=key_heads)
    seen = attention_maps(filled(config, SHAPE), SOURCE, TARGET, *KEEPS)
    assert {name: map_.shape for name, map_ in seen.items()} == {
        "encoder": (3, 2, 6, 6), "decoder": (3, 2, 5, 5), "cross": (3, 2, 5, 6),
    }  # fmt: skip
    np.testing.assert_allclose(seen["cross"][:, :, :4].sum(axis=-1), np.ones((3, 2, 4)), atol=1e-5)
    assert not seen["cross"][..., 4:].any()


def test_two_layers_overfit_eight_sequences_and_greedy_decoding_is_the_argmax_of_teacher_forcing():
    model = created(Transformer(width=32, heads=2))
    sources = jax.random.randint(jax.random.key(1), (8, 5), 3, 12)
    answers = jnp.concatenate([jax.random.randint(jax.random.key(2), (8, 4), 3, 9), jnp.full((8, 1), 2)], axis=1)
    given = jnp.concatenate([jnp.ones((8, 1), jnp.int32), answers[:, :-1]], axis=1)
    ones = jnp.ones(5, bool)
    model = overfitted(model, lambda model: jax.vmap(lambda s, t: model(s, t, ones, ones))(sources, given), answers)
    decode = jax.jit(jax.vmap(lambda s: greedy(model.step, model.start(s, ones, 5), 1, 2, 5)))
    np.testing.assert_array_equal(decode(sources), answers)


class Past(Recurrent):
    """A mechanism that reads the past only."""

    def update(self, memory, q, k, v, block, *, bias=None, **extra):
        return v, memory


@dataclass(frozen=True)
class Mixing(Wrapper):
    """A mechanism whose outputs depend on the other queries."""

    mechanism: Mechanism = Softmax()
    traits = Traits(row_independent=False)


@pytest.mark.parametrize(
    ("fields", "line"),
    [
        ({"heads": 3}, "model.heads=3 must divide model.width=8"),
        ({"key_heads": 3}, "model.key_heads=3 must divide model.heads=2"),
        ({"width": 0}, "model.width=0"),
        ({"layers": 0}, "model.layers=0"),
        ({"dropout": 1.0}, "model.dropout=1.0"),
        ({"feedforward": -1}, "model.feedforward=-1"),
        ({"position": XPos(), "mechanism": Linear()}, "model.position=XPos.*encoder's Linear.*choose another"),
        ({"position": ALiBi(), "decoder": Linear()}, "model.position=ALiBi.*decoder's Linear.*does not support a bias"),
        ({"position": Shaw(), "encoder": Linear()}, "model.position=Shaw.*encoder's Linear.*does not support a bias"),
        ({"position": Rotary(), "width": 6}, "must be even"),
        (
            {"encoder": Past()},
            "model.encoder=Past.* supports only causal attention.*use for example model.encoder=softmax",
        ),
        ({"cross": Past()}, "model.cross=Past.* supports only causal attention.*use for example model.cross=softmax"),
        (
            {"mechanism": Past()},
            "model.mechanism=Past.* only causal attention.*model.encoder=softmax model.cross=softmax$",
        ),
        ({"cross": Mixing()}, "model.cross=Mixing.*later targets.*model.cross=softmax"),
    ],
)
def test_invalid_fields_are_refused_at_creation(fields, line):
    with pytest.raises(ValueError, match=line):
        Transformer(**(SMALL | fields))


@pytest.mark.parametrize("layers", [2, 5], ids=["unrolled", "looped"])
def test_computing_layers_again_in_the_backward_pass_changes_nothing(layers):
    stored, again = (gradients(made(layers=layers, remat=remat)) for remat in (False, True))
    for one, other in zip(jax.tree.leaves(stored), jax.tree.leaves(again), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-5)
    traced = lambda remat: str(jax.make_jaxpr(gradients)(made(layers=layers, remat=remat)))
    assert "checkpoint" in traced(True) or "remat" in traced(True)
    assert "checkpoint" not in traced(False)
    assert "remat" not in traced(False)


def test_a_shared_embedding_needs_a_shared_vocabulary():
    shape = Pairs(9, 9, 8, 6, joint=True)
    shared, two = (jax.eval_shape(lambda c=c: c.create(jax.random.key(0), shape)) for c in (
        Transformer(**SMALL, shared=True, tied=True), Transformer(**SMALL, tied=True)
    ))  # fmt: skip
    count = lambda model: sum(x.size for x in jax.tree.leaves(model))
    assert count(two) - count(shared) == 9 * 8
    model = filled(Transformer(**SMALL, shared=True), shape)
    table = gradients(model).target.table[...]
    # 3 occurs only in the source, 1 only in the target, and 7 in neither.
    assert np.abs(table[3]).max() > 0 < np.abs(table[1]).max()
    np.testing.assert_array_equal(table[7], 0)
    with pytest.raises(ValueError, match=r"model\.shared=True needs one vocabulary for both sides"):
        Transformer(**SMALL, shared=True).create(jax.random.key(0), SHAPE)


@pytest.mark.parametrize(
    ("field", "line"),
    [
        ("norm", "model.norm='other' must be one of layer, rms"),
        (
            "activation",
            "model.activation='other' must be one of relu, gelu, gelu_tanh, silu, glu, reglu, geglu, swiglu",
        ),
        ("initialiser", "model.initialiser='other' must be one of gaussian, xavier, kaiming"),
        ("dtype", "model.dtype='other' must be one of float32, bfloat16, float16, float64"),
    ],
)
def test_unknown_values_are_refused(field, line):
    config = Transformer()
    # Bypasses the constructor, whose types are checked in tests but not elsewhere.
    object.__setattr__(config, field, "other")
    with pytest.raises(ValueError, match=line):
        config.__post_init__()


def test_mechanisms_that_mix_queries_may_encode_and_causal_ones_may_decode():
    Transformer(**SMALL, encoder=Mixing())
    Transformer(**SMALL, decoder=Past())
