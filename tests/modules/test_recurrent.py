from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attnlab.analysis.maps import with_maps
from attnlab.mechanisms import MECHANISMS, Softmax
from attnlab.mechanisms.pairwise import Pairwise
from attnlab.modules.recurrent import RecurrentLayer
from attnlab.modules.recurrent_attention import RecurrentAttention
from attnlab.ops.cell import CELLS
from attnlab.ops.mask import KeyPadding
from attnlab.ops.score import additive, concat, general
from attnlab.ops.softmax import masked_softmax
from tests.models.kinds import one_of_each
from tests.models.training import filled
from tests.ops.test_cell import FORMULAS

D, H = 3, 4
KEEP = np.array([False, True, True, False, True, False])
cells = pytest.mark.parametrize("cell", CELLS)


@partial(jax.jit, static_argnums=0)
def built(make):
    return make()


class Made(NamedTuple):
    """Wraps a function that creates a module as a config for `filled`."""

    make: Callable

    def create(self, key, shape):
        return self.make(key)


def made(cell="gru", inputs=D, layers=2, **fields):
    """Returns a layer with biases that are not zero."""
    return filled(Made(lambda key: RecurrentLayer(key, cell, inputs, H, layers, **fields)), None)


def vectors(T=6, width=D, seed=2):
    return np.random.default_rng(seed).normal(size=(T, width)).astype(np.float32)


@jax.jit
def run(module, x, keep):
    """Returns outputs and last state, and the gradients of a loss on all of them."""

    def loss(x, module):
        y, last = module(x, keep)
        weights = jnp.cumsum(jnp.ones(y.shape[1]))
        return jnp.sum(y[jnp.argsort(~keep, stable=True)][:3] ** 2 * weights[None, :]) + sum(
            jnp.sum(part * weights[: part.size]) for state in last for part in state
        )

    return module(x, keep), jax.grad(loss, argnums=(0, 1))(x, module)


def written_out(module, x):
    """Computes the layer by the formulas, token by token, in float64."""
    last = []
    for directions in module.layers:
        sides, states = [], []
        for back, way in enumerate(directions):
            w, b = (np.asarray(p[...], np.float64) for p in (way.w, way.b))
            learned = {"u": way.u, "b": way.inner, "decay": way.decay}
            learned = {name: np.asarray(p[...], np.float64) for name, p in learned.items() if p is not None}
            state, y = tuple(np.zeros(H) for _ in range(way.cell.states)), {}
            for t in reversed(range(len(x))) if back else range(len(x)):
                state = FORMULAS[way.cell.step.__name__](x[t] @ w + b, state, **learned)
                y[t] = state[0]
            sides.append(np.array([y[t] for t in range(len(x))]))
            states.append(state)
        x = np.concatenate(sides, axis=1)
        last.append(tuple(np.concatenate(parts) for parts in zip(*states, strict=True)))
    return x, last


@cells
def test_two_bidirectional_layers_equal_the_formula_under_any_padding(cell):
    module, x = made(cell, bidirectional=True), vectors()
    poisoned = np.where(KEEP[:, None], x, np.nan)
    (y, last), (gradient, learned) = run(module, jnp.asarray(poisoned), jnp.asarray(KEEP))
    expected, states = written_out(module, x[KEEP].astype(np.float64))
    np.testing.assert_allclose(y[KEEP], expected, atol=1e-5)
    assert not np.any(y[~KEEP])
    jax.tree.map(partial(np.testing.assert_allclose, atol=1e-5), last, tuple(states))
    _, (short, same) = run(module, jnp.asarray(x[KEEP]), jnp.ones(3, bool))
    np.testing.assert_allclose(gradient[KEEP], short, atol=1e-4)
    assert not np.any(gradient[~KEEP])
    jax.tree.map(partial(np.testing.assert_allclose, atol=1e-3), learned, same)
    assert all(np.abs(leaf).max() > 1e-4 for leaf in jax.tree.leaves(learned))


@cells
def test_stepping_equals_the_scan_and_parts_of_an_input_add_up(cell):
    module, x, ones = made(cell), jnp.asarray(vectors()), jnp.ones(6, bool)

    @jax.jit
    def forms(module):
        gates = module.gates(x[:, :2], ones)[0] + module.partial_gates(x[:, 2:], 2)[0]
        state, y = jax.lax.scan(lambda state, gates: module.step(gates, state)[::-1], module.start(x.dtype), gates)
        return (y, state), module(x, ones), module(x[3:], ones[3:], start=module(x[:3], ones[:3])[1])

    steps, whole, further = forms(module)
    jax.tree.map(partial(np.testing.assert_allclose, atol=1e-6), steps, whole)
    np.testing.assert_allclose(further[0], whole[0][3:], atol=1e-6)


@cells
def test_a_sequence_without_tokens_leaves_the_state_unchanged(cell):
    x, module = jnp.asarray(vectors()), made(cell, bidirectional=True)
    state = module(x, None)[1]
    y, last = module(x[:0], None, start=state)
    assert y.shape == (0, 2 * H)
    jax.tree.map(np.testing.assert_array_equal, last, state)


def test_dropout_is_between_layers_needs_a_key_and_is_drawn_for_all_steps_at_once():
    x, ones = jnp.asarray(vectors(6, H)), jnp.ones(6, bool)
    module = made("rnn", inputs=H, rate=0.5)
    whole = jax.jit(lambda module, key: module(x, ones, key)[0])
    one, same, other = (whole(module, jax.random.key(n)) for n in (1, 1, 2))
    np.testing.assert_array_equal(one, same)
    assert np.abs(one - other).max() > 0.01
    np.testing.assert_array_equal(whole(module, None), whole(module, None))
    single = made("rnn", inputs=H, layers=1, rate=0.5)
    np.testing.assert_array_equal(whole(single, jax.random.key(1)), whole(single, None))
    assert single.masks(6, x.dtype, jax.random.key(1)) is None
    masks = module.masks(500, x.dtype, jax.random.key(1))
    assert masks.shape == (500, 1, H)
    assert set(np.unique(masks)) == {0.0, 2.0}
    assert float(masks.mean()) == pytest.approx(1, abs=0.1)
    step = lambda masks: module.step(module.gates(x, ones)[0][0], module.start(x.dtype), masks)[0]
    np.testing.assert_allclose(step(jnp.ones((1, H))), step(None), atol=1e-6)
    assert np.abs(step(masks[0] * 0) - step(None)).max() > 1e-3


def test_initial_weights_and_biases():
    module = built(partial(RecurrentLayer, jax.random.key(0), "lstm", 30, 20, 2, True))
    for directions in module.layers:
        assert len(directions) == 2
        for n, way in enumerate(directions):
            np.testing.assert_array_equal(way.b[...], np.repeat([0.0, 1.0, 0.0, 0.0], 20))
            for gate in np.split(np.asarray(way.u[...]), 4, axis=1):
                np.testing.assert_allclose(gate.T @ gate, np.eye(20), atol=1e-5)
            inputs = way.w.shape[0]
            assert float(way.w[...].std()) == pytest.approx((2 / (inputs + 20)) ** 0.5, rel=0.1)
            assert np.abs(way.w[...] - directions[1 - n].w[...]).max() > 0.1
    assert [way.w.shape[0] for way, _ in module.layers] == [30, 40]
    # The initial values of a layer do not depend on other layers.
    single = built(partial(RecurrentLayer, jax.random.key(0), "lstm", 30, 20))
    np.testing.assert_array_equal(single.layers[0][0].w[...], module.layers[0][0].w[...])


def test_states_are_float32_with_half_precision_inputs():
    x = jax.ShapeDtypeStruct((6, D), jnp.bfloat16)
    module = made("lstm", bidirectional=True)
    y, last = jax.eval_shape(lambda x: module(x, jnp.ones(6, bool)), x)
    assert (y.shape, y.dtype) == ((6, 2 * H), jnp.bfloat16)
    assert {part.dtype for state in last for part in state} == {jnp.dtype("float32")}


def test_invalid_arguments_are_refused_by_name():
    with pytest.raises(ValueError, match="cell='elman' must be one of rnn, gru, lstm, rg-lru"):
        RecurrentLayer(jax.random.key(0), "elman", D, H)
    with pytest.raises(ValueError, match=r"layers=0 must be at least 1$"):
        RecurrentLayer(jax.random.key(0), "gru", D, H, layers=0)
    both, single = made(bidirectional=True), made()
    with pytest.raises(ValueError, match="a bidirectional layer needs the whole sequence"):
        both.step(jnp.ones(3 * H), both.start(jnp.float32))
    with pytest.raises(ValueError, match="x has width 2 and starts at column 2, but the cell has 3 input columns"):
        single.partial_gates(jnp.ones((1, 2)), 2)
    with pytest.raises(ValueError, match="x has width 2, expected 3"):
        single(jnp.ones((6, 2)), None)


WIDTH, MEMORY = 4, 8


def reader(mechanism, heads=2, encoder_size=MEMORY):
    return filled(Made(lambda key: RecurrentAttention(key, WIDTH, encoder_size, heads, mechanism)), None)


@jax.jit
def forms_of_reading(module, x, encoded, keep):
    known = module.keys_values(encoded)
    ready = module.precompute_keys(known)
    whole = module.read(x, known, KeyPadding(keep))
    steps = jax.vmap(lambda x, i: module.step(x, ready, keep, i))(x, jnp.arange(len(x)))
    return whole, steps


def given():
    keep = np.arange(6) < 5
    encoded = np.where(keep[:, None], vectors(6, MEMORY, 4), 0)
    return vectors(5, WIDTH, 5), encoded, keep


@dataclass(frozen=True)
class Weighed(Pairwise):
    """A mechanism with an extra input per key token, one learned number."""

    @property
    def tokens(self):
        return {"share": ()}

    def weights(self, q, k, allowed, *, share, **rest):
        return Softmax().weights(q, k, allowed, **rest) * jax.nn.sigmoid(share)[None, :]


SUMS = {
    "additive": Softmax(score=additive),
    "concat": Softmax(score=concat, block=2),
    "weighed": Weighed(),
    "capped": Softmax(score=additive, softcap=0.5),
    "sink": Softmax(score=concat, softcap=0.5, sink="learned"),
}


def reads(mechanism):
    """Returns whether a mechanism can attend to an encoded source with one query."""
    traits = mechanism.traits
    return traits.non_causal and traits.row_independent and not traits.self_only


CAN = one_of_each(reads)


@pytest.mark.parametrize("name", [*SUMS, *CAN])
def test_attending_step_by_step_equals_attending_at_once_and_ignores_padding(name):
    mechanism = SUMS[name] if name in SUMS else MECHANISMS[name].with_length(6)
    x, encoded, keep = given()
    (c, look), (steps, _) = forms_of_reading(reader(mechanism), *map(jnp.asarray, (x, encoded, keep)))
    assert (c.shape, look) == ((5, MEMORY), None)
    np.testing.assert_allclose(steps, c, atol=1e-5)
    assert np.abs(c).max() > 0.01


@pytest.mark.parametrize("score", [general, additive])
def test_attention_with_maps_has_the_same_output(score):
    x, encoded, keep = (jnp.asarray(each) for each in given())
    plain, _ = forms_of_reading(reader(Softmax(score=score)), x, encoded, keep)
    whole, steps = forms_of_reading(with_maps(reader(Softmax(score=score))), x, encoded, keep)
    for c, look in (whole, (steps[0], steps[1].swapaxes(0, 1))):
        np.testing.assert_allclose(c, plain[0], atol=1e-5)
        assert look.shape == (2, 5, 6)
        np.testing.assert_allclose(look.sum(axis=2), np.ones((2, 5)), atol=1e-5)
        by_hand = [look[h] @ encoded[:, 4 * h : 4 * h + 4] for h in range(2)]
        np.testing.assert_allclose(c, np.concatenate(by_hand, axis=1), atol=1e-5)
        assert not look[:, :, 5].any()


def test_one_head_of_equal_width_scores_unprojected_states():
    plain, wider, several = (reader(Softmax(score=general), *sizes) for sizes in ((1, WIDTH), (1,), (2, WIDTH)))
    assert plain.q is plain.k is wider.q is None
    assert wider.k.w.shape == (MEMORY, WIDTH)
    assert several.q.w.shape == several.k.w.shape == (WIDTH, WIDTH)
    x, encoded = vectors(5, WIDTH, 5), vectors(6, WIDTH, 4)
    scores = x @ np.asarray(plain.learned["w"][0]) @ encoded.T
    expected = masked_softmax(jnp.asarray(scores), jnp.ones((5, 6), bool)) @ encoded
    found = plain.read(jnp.asarray(x), plain.keys_values(jnp.asarray(encoded)))[0]
    np.testing.assert_allclose(found, expected, atol=1e-5)


def test_heads_must_divide_the_width():
    with pytest.raises(ValueError, match=r"model.heads=3 must divide model.width=4"):
        RecurrentAttention(jax.random.key(0), WIDTH, MEMORY, 3, Softmax())
    with pytest.raises(ValueError, match=r"heads=2 must divide encoder_size=7, the width of the values"):
        RecurrentAttention(jax.random.key(0), WIDTH, 7, 2, Softmax())
