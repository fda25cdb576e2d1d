import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attnlab.analysis.maps import attention_maps
from attnlab.decoding import greedy
from attnlab.lab.study import serialize
from attnlab.mechanisms import MECHANISMS, Linear, Recurrent, Softmax
from attnlab.mechanisms.window import Local, LocalP
from attnlab.models import MODELS, Seq2Seq
from attnlab.ops.score import additive, concat, dot, general, location
from attnlab.tasks.base.shapes import Pairs
from tests.ops.test_cell import gru_formula, lstm_formula

from .training import filled, overfitted

SHAPE = Pairs(12, 9, 8, 6)
SOURCE = np.array([3, 4, 5, 6, 0, 0])
KEEP = SOURCE != 0
TARGET = np.array([1, 4, 5, 6, 0])
SMALL = {"width": 4, "embedding": 3}

# Sources with padding: unchanged, with other contents, before the symbols, and between them.
SOURCES = np.array([SOURCE, [3, 4, 5, 6, 9, 9], [9, 7, 3, 4, 5, 6], [9, 3, 4, 9, 5, 6]])
KEEPS = np.array([KEEP, KEEP, KEEP[::-1], SOURCES[3] != 9])

KINDS = {
    "last": {"cell": "rnn", "bridge": "last", "layers": 2},
    "every": {"context": "every", "bidirectional": True, "cell": "gru", "bridge": "none"},
    "bahdanau": {"attention": "bahdanau", "cell": "gru", "bidirectional": True, "layers": 2},
    "bahdanau-linear": {"attention": "bahdanau", "mechanism": Linear(), "heads": 2},
    "luong": {"attention": "luong", "bidirectional": True, "bridge": "none", "tied": True, "embedding": None},
    "local-m": {"attention": "luong", "mechanism": Local(left=2, right=2, score=dot)},
    "location": {"attention": "luong", "mechanism": Softmax(score=location, length=6)},
    "local-p": {"attention": "luong", "mechanism": LocalP(width=2), "input_feeding": True, "layers": 2},
    "concat": {"attention": "luong", "mechanism": Softmax(score=concat), "input_feeding": True, "heads": 2},
}


def made(kind=None, **fields):
    return filled(Seq2Seq(**(SMALL | KINDS.get(kind, {}) | fields)), SHAPE)


scores = jax.jit(lambda model, *given: model(*given))


@jax.jit
def forms(model):
    """Returns teacher forcing for every source and for another target end, and decoding step by step."""
    target = jnp.asarray(TARGET)
    forced = jax.vmap(lambda source, keep: model(source, target, keep, target != 0))(
        jnp.asarray(SOURCES), jnp.asarray(KEEPS)
    )
    source, keep = jnp.asarray(SOURCE), jnp.asarray(KEEP)
    other = model(source, target.at[3].set(8), keep, target != 0)
    step = lambda state, token: model.step(state, token)[::-1]
    return forced, other, jax.lax.scan(step, model.start(source, keep, len(TARGET)), target)[1]


@pytest.mark.parametrize("kind", KINDS)
def test_decoding_equals_teacher_forcing_and_padding_and_later_symbols_have_no_effect(kind):
    forced, other, steps = forms(made(kind))
    np.testing.assert_allclose(steps[:4], forced[0, :4], atol=1e-5)
    for padded in forced[1:]:
        np.testing.assert_allclose(padded[:4], forced[0, :4], atol=1e-5)
    np.testing.assert_allclose(other[:3], forced[0, :3], atol=1e-6)
    assert np.abs(other[3] - forced[0, 3]).max() > 1e-3
    assert other.dtype == jnp.float32


@pytest.mark.parametrize("kind", ["every", "bahdanau", "local-p"])
def test_padding_has_no_gradient_and_all_parameters_have_one(kind):
    target = jnp.asarray(TARGET)

    @jax.jit
    def gradients(model):
        loss = lambda model, source, keep: jnp.sum(model(source, target, keep, target != 0)[:4] ** 2)
        return jax.vmap(jax.grad(loss), (None, 0, 0))(model, jnp.asarray(SOURCES), jnp.asarray(KEEPS))

    for leaf in jax.tree.leaves(gradients(made(kind, layers=1))):
        np.testing.assert_allclose(leaf[1:], np.broadcast_to(leaf[0], leaf[1:].shape), atol=1e-5)
        assert np.abs(leaf[0]).max() > 1e-7


def arrays(direction):
    return [np.asarray(p[...], np.float64) for p in (direction.w, direction.u, direction.b)]


def shares(scores):
    share = np.exp(scores - scores.max())
    return share / share.sum()


def begun(model):
    """Returns the initial states of the decoder's layers, and the vectors of the source."""
    state = jax.jit(lambda model: model.start(jnp.asarray(SOURCE), jnp.asarray(KEEP), 5))(model)
    vectors = np.asarray(state.encoded.vectors["v"][:4, 0], np.float64)
    return [tuple(np.asarray(part, np.float64) for part in layer) for layer in state.layers], vectors


def embedded(model, token):
    return np.asarray(model.target.table[token], np.float64) * 3**0.5


def test_bahdanau_equals_the_published_equations():
    """Computes e_j = w·tanh(s W + m_j U), c = Σ a_j m_j, s' = GRU([e(y) ; c], s).

    The deep output is that of [s' ; e(y) ; c]. With two layers, the upper one attends.
    """
    model = made(attention="bahdanau", cell="gru", bidirectional=True, layers=2)
    states, m = begun(model)
    assert m.shape == (4, 8)
    w_q, w_k, w_a = (np.asarray(model.reader.learned[name][0], np.float64) for name in ("w_q", "w_k", "w"))
    keys = m @ np.asarray(model.reader.k.w[...]) @ w_k
    found = scores(model, *map(jnp.asarray, (SOURCE, TARGET, KEEP, TARGET != 0)))
    for t, token in enumerate(TARGET[:4]):
        e = embedded(model, token)
        c = shares(np.tanh(states[-1][0] @ w_q + keys) @ w_a) @ m
        x = np.concatenate([e, c])
        for n, (way,) in enumerate(model.decoder.layers):
            w, u, b = arrays(way)
            states[n] = gru_formula(x @ w + b, states[n], u, np.asarray(way.inner[...]))
            x = states[n][0]
        deep = np.concatenate([x, e, c]) @ np.asarray(model.joint.w[...]) + np.asarray(model.joint.b[...])
        deep = np.maximum(deep[::2], deep[1::2])
        np.testing.assert_allclose(
            found[t], deep @ np.asarray(model.output.w[...]) + np.asarray(model.output.b[...]), atol=1e-5
        )


@pytest.mark.parametrize("feeding", [True, False])
@pytest.mark.parametrize("mechanism", [Softmax(score=dot), LocalP(width=2)], ids=["dot", "local-p"])
def test_luong_equals_the_published_equations(mechanism, feeding):
    """Computes h' = LSTM([e(y) ; h̃], h), a = softmax(h'·m), h̃' = tanh([Σ a_j m_j ; h'] W) and the logits of h̃'.

    Local-p multiplies the weights by its Gaussian.
    """
    model = made(attention="luong", mechanism=mechanism, input_feeding=feeding)
    (state,), m = begun(model)
    w, u, b = arrays(model.decoder.layers[0][0])
    assert w.shape[0] == (7 if feeding else 3)
    found = scores(model, *map(jnp.asarray, (SOURCE, TARGET, KEEP, TARGET != 0)))
    joint = np.zeros(4)
    for t, token in enumerate(TARGET[:4]):
        x = np.concatenate([embedded(model, token), joint]) if feeding else embedded(model, token)
        state = lstm_formula(x @ w + b, state, u)
        h, near, fade = state[0], np.ones(4, bool), np.ones(4)
        if not isinstance(mechanism, Softmax):
            w_p, v_p = (np.asarray(model.reader.learned[name][0], np.float64) for name in ("w_p", "v_p"))
            p = 4 / (1 + np.exp(-np.tanh(h @ w_p) @ v_p))
            near, fade = np.abs(np.arange(4) - p) <= 2, np.exp(-((np.arange(4) - p) ** 2) / (2 * (2 / 2) ** 2))
            h = h / 4**0.5  # local-p uses the scaled dot product
        a = shares(np.where(near, m @ h, -np.inf)) * fade
        joint = np.tanh(np.concatenate([a @ m, state[0]]) @ np.asarray(model.joint.w[...]))
        np.testing.assert_allclose(
            found[t], joint @ np.asarray(model.output.w[...]) + np.asarray(model.output.b[...]), atol=1e-5
        )


def test_initial_states_of_the_decoder():
    given = tuple(map(jnp.asarray, (SOURCE, KEEP)))
    begin = jax.jit(
        lambda model: (model.start(*given, 5).layers, model.encoder(model.source(given[0], jnp.float32), given[1])[1])
    )
    for bridge in ("none", "last", "project"):
        model = made(attention="luong", bridge=bridge, layers=2)
        layers, last = begin(model)
        for n in range(2):
            (h, c), (h_last, c_last) = layers[n], last[n]
            if bridge == "none":
                h_last, c_last = 0 * h_last, 0 * c_last
            if bridge == "project":
                one, other = model.bridge[n]
                h_last, c_last = jnp.tanh(one(h_last[None])[0]), other(c_last[None])[0]
            np.testing.assert_allclose(h, h_last, atol=1e-6)
            np.testing.assert_allclose(c, c_last, atol=1e-6)


def test_the_published_settings_have_the_published_sizes():
    """Checks JoeyNMT's reverse task.

    It has a bidirectional LSTM of 64, embedding 16, a decoder of 64 that starts from zeros, and input feeding.
    """
    config = Seq2Seq(64, 16, bidirectional=True, attention="luong", input_feeding=True, bridge="none")
    model = jax.eval_shape(lambda: config.create(jax.random.key(0), Pairs(54, 54, 32, 32)))
    count = lambda tree: sum(leaf.size for leaf in jax.tree.leaves(tree))
    assert count(model.encoder) == 2 * 4 * 64 * (16 + 64 + 1)
    assert count(model.decoder) == 4 * 64 * (16 + 64 + 64 + 1)
    assert count(model.reader) == 128 * 64 + 64 * 64
    assert count(model.joint) == (128 + 64) * 64
    assert count((model.source, model.target, model.output)) == 2 * 54 * 16 + 65 * 54
    assert model.bridge is None


def test_its_map_is_that_of_each_head_in_the_columns_of_its_symbols():
    for kind, heads in (("bahdanau-linear", 2), ("local-m", 1)):
        config = Seq2Seq(**(SMALL | KINDS[kind]))
        for n in (0, 3):
            given = SOURCES[n], TARGET, KEEPS[n], TARGET != 0
            seen = attention_maps(filled(config, SHAPE), *map(jnp.asarray, given))["cross"]
            assert seen.shape == (1, heads, 5, 6)
            np.testing.assert_allclose(seen[0, :, :4].sum(axis=2), np.ones((heads, 4)), atol=1e-5)
            assert not seen[..., ~KEEPS[n]].any()
    # Local-m sees the symbols at t−1 … t+1, where padding is not counted.
    near = np.abs(np.arange(4)[:, None] - np.arange(4)[None, :]) <= 1
    np.testing.assert_array_equal(np.asarray(seen[0, 0, :4][:, KEEPS[3]]) > 0, near)


def test_without_attention_there_is_no_map():
    config = Seq2Seq(**SMALL)
    given = map(jnp.asarray, (SOURCE, TARGET, KEEP, TARGET != 0))
    assert attention_maps(filled(config, SHAPE), *given) == {"cross": None}


@pytest.mark.parametrize("kind", ["last", "local-p"])
def test_dropout_needs_a_key_and_differs_by_it(kind):
    model = made(kind, dropout=0.5)
    given = tuple(map(jnp.asarray, (SOURCE, TARGET, KEEP, TARGET != 0)))
    keys = jax.random.wrap_key_data(jnp.array([[0, 1], [0, 1], [0, 2]], jnp.uint32))
    run = jax.jit(lambda model: (model(*given), *jax.vmap(lambda key: model(*given, key))(keys)))
    without, one, same, other = run(model)
    np.testing.assert_array_equal(one, same)
    assert np.abs(one - other).max() > 0.01
    assert np.abs(one - without).max() > 0.01


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_works_in_half_precision(kind):
    config = Seq2Seq(**(SMALL | KINDS[kind] | {"dtype": "bfloat16", "dropout": 0.1}))
    model = jax.eval_shape(lambda: config.create(jax.random.key(0), SHAPE))
    given = tuple(map(jnp.asarray, (SOURCE, TARGET, KEEP, TARGET != 0)))
    assert {leaf.dtype for leaf in jax.tree.leaves(model)} == {jnp.dtype("float32")}
    assert jax.eval_shape(lambda model: model(*given, jax.random.key(0)), model).dtype == jnp.float32
    state = jax.eval_shape(lambda model: model.start(given[0], given[2], 5), model)
    assert state.length == 5
    score, after = jax.eval_shape(lambda model, state: model.step(state, jnp.int32(3)), model, state)
    assert score.dtype == jnp.float32
    assert jax.tree.map(lambda x: (x.shape, x.dtype), after) == jax.tree.map(lambda x: (x.shape, x.dtype), state)
    assert {part.dtype for layer in state.layers for part in layer} == {jnp.dtype("float32")}


@pytest.mark.parametrize("kind", ["last", "bahdanau"])
def test_it_overfits_eight_sequences_and_greedy_decoding_is_the_argmax_of_teacher_forcing(kind):
    fields = KINDS[kind] | {"cell": "gru", "layers": 2 if kind == "last" else 1, "width": 24, "embedding": 16}
    config = Seq2Seq(**fields)
    model = jax.jit(lambda: config.create(jax.random.key(0), SHAPE))()
    sources = jax.random.randint(jax.random.key(1), (8, 5), 3, 12)
    answers = jnp.concatenate([jax.random.randint(jax.random.key(2), (8, 4), 3, 9), jnp.full((8, 1), 2)], axis=1)
    given = jnp.concatenate([jnp.ones((8, 1), jnp.int32), answers[:, :-1]], axis=1)
    ones = jnp.ones(5, bool)
    model = overfitted(model, lambda model: jax.vmap(lambda s, t: model(s, t, ones, ones))(sources, given), answers)
    decode = jax.jit(jax.vmap(lambda s: greedy(model.step, model.start(s, ones, 5), 1, 2, 5)))
    np.testing.assert_array_equal(decode(sources), answers)


def test_too_many_symbols_are_refused():
    model = made("luong")
    state = jax.eval_shape(lambda: model.start(jnp.asarray(SOURCE), jnp.asarray(KEEP), 5))
    with pytest.raises(ValueError, match="length=6 must be at most 5, the capacity of the state"):
        greedy(model.step, state, 1, 2, 6)


def test_it_is_registered_and_serializable():
    assert MODELS["seq2seq"] == Seq2Seq()
    assert MODELS["bahdanau"].attentions == {"cross": Softmax(score=additive)}
    assert MODELS["luong"].attentions == {"cross": Softmax(score=general)}
    for config in (MODELS["bahdanau"], Seq2Seq(**KINDS["local-p"]), Seq2Seq(**KINDS["concat"])):
        assert serialize.read(serialize.write(config), Seq2Seq) == config


class Past(Recurrent):
    """A mechanism that reads the past only."""

    def update(self, memory, q, k, v, block, *, bias=None, **extra):
        return v, memory


BOTH = {"bidirectional": True}


@pytest.mark.parametrize(
    ("fields", "line"),
    [
        ({"width": 0}, "model.width=0 must be at least 1"),
        ({"embedding": 0}, "model.embedding=0 must be at least 1"),
        ({"layers": 0}, "model.layers=0 must be at least 1"),
        ({"layers": 1025}, "model.layers=1025 must be at least 1, and at most 1024"),
        ({"width": 2**21}, "model.width=2097152 must be at least 1, and at most 1048576"),
        ({"dropout": 1.0}, "model.dropout=1.0"),
        ({"attention": "luong", "heads": 3}, "model.heads=3 must divide model.width=4"),
        ({"tied": True}, "model.tied=True needs model.embedding=3 to be equal to model.width=4"),
        (
            {"mechanism": Softmax()},
            "model.mechanism=.* needs model.attention=luong or bahdanau, got model.attention=none",
        ),
        ({"heads": 2}, "model.heads=2 needs model.attention=luong or bahdanau, got model.attention=none"),
        ({"input_feeding": True}, "model.input_feeding=True needs model.attention=luong.*, got model.attention=none"),
        ({"attention": "bahdanau", "input_feeding": True}, "model.input_feeding=True .* got model.attention=bahdanau"),
        (
            {"attention": "luong", "context": "every"},
            "model.context=every needs model.attention=none, got model.attention=luong",
        ),
        ({"bridge": "none"}, "model.bridge=none gives the decoder no input from the source"),
        ({"bridge": "last", **BOTH}, "model.bridge=last.* 8 components.* model.width=4; use model.bridge=project"),
        ({"attention": "luong", "mechanism": Past()}, "model.mechanism=Past.* supports only causal attention"),
        ({"attention": "luong", "mechanism": MECHANISMS["nystrom"]}, "model.mechanism=Nystrom.* mixes queries"),
    ],
)
def test_invalid_fields_are_refused_at_creation(fields, line):
    with pytest.raises(ValueError, match=line):
        Seq2Seq(**(SMALL | fields))


@pytest.mark.parametrize(
    ("field", "value", "line"),
    [
        ("cell", "lstn", "model.cell='lstn' must be one of rnn, gru, lstm, rg-lru; nearest: 'lstm'"),
        ("attention", "Luongs", "model.attention='Luongs' must be one of bahdanau, luong; nearest: 'luong'"),
        ("context", "each", "model.context='each' must be one of once, every"),
        ("bridge", "projected", "model.bridge='projected' must be one of none, last, project; nearest: 'project'"),
        ("bridge", None, "model.bridge=None must be one of none, last, project; nearest: 'none'"),
        ("dtype", "float", "model.dtype='float' must be one of float32, "),
        ("mechanism", "softmax", "model.mechanism='softmax' must be a mechanism"),
    ],
)
def test_unknown_values_are_refused(field, value, line):
    config = Seq2Seq(attention="luong")
    # Bypasses the constructor, whose types are checked in tests but not elsewhere.
    object.__setattr__(config, field, value)
    with pytest.raises(ValueError, match=line):
        config.__post_init__()
