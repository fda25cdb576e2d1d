"""Checks the attention layer around a mechanism against the formulas written out in NumPy."""

from dataclasses import replace
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attnlab.analysis.maps import attention_maps, with_maps
from attnlab.mechanisms import MECHANISMS, Linear, Softmax
from attnlab.models import Classifier, Detr, Language, Transformer
from attnlab.modules.attention import Attention
from attnlab.modules.dense import Dense
from attnlab.modules.multi_head import MultiHead
from attnlab.modules.position import ALiBi, Position, Rotary, Shaw, Sinusoidal
from attnlab.modules.stack import unstack_layers
from attnlab.ops.mask import Causal
from attnlab.pattern import Pattern
from attnlab.tasks.base.shapes import Classes, Tokens

D, T = 8, 7
LAYERS = {
    "plain": MultiHead(),
    "gate per head": MultiHead(gate="head"),
    "gate per channel": MultiHead(gate="channel", gate_activation="silu"),
    "gate of low rank": MultiHead(gate="channel", gate_rank=3),
    "rms": MultiHead(head_norm="rms"),
    "group": MultiHead(head_norm="group", gate="channel"),
    "qk-norm per head": MultiHead(qk_norm="head"),
    "qk-norm of all": MultiHead(qk_norm="all"),
    "widths": MultiHead(head_width=6, value_width=5),
    "value heads": MultiHead(value_heads=4, head_width=3, qk_norm="head", gate="head"),
    "convolution": MultiHead(convolution=3),
    "convolution of values": MultiHead(convolution=4, convolved="v"),
    "expansions": MultiHead(key_expansion=0.5, value_expansion=2.0, head_norm="all", gate="channel"),
    "norm after gate": MultiHead(
        head_norm="all", gate="channel", norm_after_gate=True, skip=True, convolution=2, convolution_bias=True
    ),
    "skip": MultiHead(skip=True),
    "exclude self": MultiHead(exclude_self=True),
    "value residual": MultiHead(value_residual=True, convolution=2),
    "all": MultiHead(
        gate="channel",
        head_norm="group",
        qk_norm="head",
        qkv_bias=True,
        head_width=4,
        value_width=6,
        value_heads=4,
        convolution=3,
        value_residual=True,
        exclude_self=True,
    ),
}
pytestmark = pytest.mark.usefixtures("x64")
layers = pytest.mark.parametrize("layer", LAYERS.values(), ids=LAYERS)


def randomised(module, seed=3):
    """Returns the module with every parameter drawn at random, so that scales, shifts and biases have an effect."""
    leaves, kind = jax.tree.flatten(module)
    keys = jax.random.split(jax.random.key(seed), len(leaves))
    draw = lambda key, leaf: leaf.astype(float) + 0.3 * jax.random.normal(key, leaf.shape)
    return jax.tree.unflatten(kind, [draw(key, leaf) for key, leaf in zip(keys, leaves, strict=True)])


def made(layer, mechanism=Softmax(), heads=2, key_heads=None):
    module = randomised(Attention(jax.random.key(0), D, heads, mechanism, key_heads, layer=layer))
    x = jax.random.normal(jax.random.key(1), (T, D))
    first = jax.random.normal(jax.random.key(2), module.values(x).shape) if layer.value_residual else None
    return module, x, first


def number(parameter):
    return np.asarray(parameter[...], np.float64)


def dense(map_, x):
    return x @ number(map_.w) + (0 if map_.b is None else number(map_.b))


def silu(x):
    return x / (1 + np.exp(-x))


def rms(x, scale):
    return x / np.sqrt((x**2).mean(-1, keepdims=True) + 1e-6) * scale


def by_hand(module, layer, x, first, causal, weigh, projected=2, key_heads=None):
    """Computes the layer in loops over heads and tokens, in float64. `weigh` gives the weights of one query."""
    x, key_heads = np.asarray(x, np.float64), key_heads or projected
    K, V = module.key_width, module.value_width
    q, k, v = (dense(each, x) for each in (module.q, module.k, module.v))
    if layer.value_residual:
        own, other = number(module.residual)
        v = own * v + other * np.asarray(first, np.float64)
    if layer.convolution:
        kernel, start, done = number(module.convolution.w), 0, {}
        for name, rows in {"q": q, "k": k, "v": v}.items():
            done[name] = rows
            if name in layer.convolved:
                part, start = kernel[:, start : start + rows.shape[1]], start + rows.shape[1]
                shift = number(module.convolution.b)[start - rows.shape[1] : start] if layer.convolution_bias else 0
                past = lambda t, rows=rows, part=part: sum(part[n] * rows[t - n] for n in range(len(part)) if t >= n)
                done[name] = silu(np.stack([past(t) for t in range(T)]) + shift)
        q, k, v = done["q"], done["k"], done["v"]
    if layer.qk_norm == "all":
        q, k = rms(q, number(module.q_norm.scale)), rms(k, number(module.k_norm.scale))
    q, k = q.reshape(T, projected, K), k.reshape(T, key_heads, K)
    if layer.qk_norm == "head":
        q, k = rms(q, number(module.q_norm.scale)), rms(k, number(module.k_norm.scale))
    H = layer.value_heads or projected
    v = v.reshape(T, layer.value_heads or key_heads, V)
    y = np.zeros((T, H, V))
    for h in range(H):
        of_q, of_k, of_v = h * projected // H, h * key_heads // H, h * v.shape[1] // H
        for t in range(T):
            seen = slice(0, t + 1 if causal else T)
            y[t, h] = weigh(q[t, of_q], k[seen, of_k]) @ v[seen, of_v]
            if layer.exclude_self:
                unit = v[t, of_v] / np.linalg.norm(v[t, of_v])
                y[t, h] -= (y[t, h] @ unit) * unit
            if layer.skip:
                y[t, h] += number(module.skip)[h] * v[t, of_v]
    y = gated(module, layer, x, y) if layer.norm_after_gate else y
    if layer.head_norm == "rms":
        y = rms(y, number(module.head_norm.scale))
    if layer.head_norm == "all":
        y = rms(y.reshape(T, -1), number(module.head_norm.scale)).reshape(T, H, V)
    if layer.head_norm == "group":
        centred = y - y.mean(-1, keepdims=True)
        y = centred / np.sqrt((centred**2).mean(-1, keepdims=True) + 1e-6)
        y = y * number(module.head_norm.scale) + number(module.head_norm.shift)
    y = y if layer.norm_after_gate else gated(module, layer, x, y)
    return dense(module.o, y.reshape(T, -1))


def gated(module, layer, x, y):
    if layer.gate == "none":
        return y
    gate = dense(module.gate, x if layer.gate_rank is None else x @ number(module.down["output gate"].w))
    gate = silu(gate) if layer.gate_activation == "silu" else 1 / (1 + np.exp(-gate))
    return y * gate.reshape(*y.shape[:2], -1)


def softmax(q, k):
    weights = np.exp(k @ q / np.sqrt(len(q)))
    return weights / weights.sum()


def linear(q, k):
    feature = lambda x: np.where(x > 0, x + 1, np.exp(np.minimum(x, 0)))
    weights = feature(k) @ feature(q)
    return weights / weights.sum()


whole = jax.jit(lambda module, x, first: module.causal(x, first=first)[0])


@layers
def test_a_causal_layer_is_the_formula_written_out(layer):
    module, x, first = made(layer)
    np.testing.assert_allclose(whole(module, x, first), by_hand(module, layer, x, first, True, softmax), atol=1e-10)


@pytest.mark.parametrize("name", ["gate per channel", "qk-norm of all", "exclude self", "rms", "widths", "skip"])
def test_grouped_heads_and_linear_attention_are_too(name):
    layer = LAYERS[name]
    module, x, first = made(layer, Linear(), heads=4, key_heads=2)
    expected = by_hand(module, layer, x, first, True, linear, 4, 2)
    np.testing.assert_allclose(whole(module, x, first), expected, atol=1e-10)


@pytest.mark.parametrize("name", ["group", "value heads", "exclude self", "skip"])
def test_attention_in_both_directions_is_too(name):
    layer = LAYERS[name]
    module, x, first = made(layer)
    y, _ = jax.jit(lambda module, x: module.attend(x))(module, x)
    np.testing.assert_allclose(y, by_hand(module, layer, x, first, False, softmax), atol=1e-10)


@layers
@pytest.mark.parametrize("mechanism", ["softmax", "gated-delta"])
def test_token_by_token_equals_the_whole(layer, mechanism):
    module, x, first = made(layer, MECHANISMS[mechanism])

    @jax.jit
    def steps(module, x, first):
        def step(state, here):
            i, token, first = here
            y, state = module.extend(token[None], state, i[None], first=None if first is None else first[None])
            return state, y[0]

        return jax.lax.scan(step, module.start(T, x.dtype), (jnp.arange(T, dtype=jnp.int32), x, first))[1]

    np.testing.assert_allclose(steps(module, x, first), whole(module, x, first), atol=1e-10)


@layers
def test_padding_before_and_after_changes_nothing(layer):
    module, x, first = made(layer)
    call = jax.jit(lambda module, x, keep, first: module.causal(x, keep, first=first)[0])
    fill = jnp.full((2, D), 7.0)
    padded = lambda rows, fill: jnp.concatenate([fill, rows, fill])
    more = None if first is None else padded(first, jnp.full((2, first.shape[1]), 5.0))
    keep = jnp.concatenate([jnp.zeros(2, bool), jnp.ones(T, bool), jnp.zeros(2, bool)])
    found = call(module, padded(x, fill), keep, more)[2:-2]
    np.testing.assert_allclose(found, whole(module, x, first), atol=1e-10)


@layers
def test_every_parameter_has_a_gradient_that_finite_differences_confirm(layer):
    module, x, first = made(layer)
    loss = jax.jit(lambda module: jnp.sum(jnp.sin(module.causal(x, first=first)[0])))
    leaves, kind = jax.tree.flatten(module)
    slopes = jax.tree.leaves(jax.grad(loss)(module))
    for n, (leaf, slope) in enumerate(zip(leaves, slopes, strict=True)):
        direction = jax.random.normal(jax.random.key(n), leaf.shape)
        ahead, back = (
            loss(jax.tree.unflatten(kind, [*leaves[:n], leaf + step * direction, *leaves[n + 1 :]]))
            for step in (1e-5, -1e-5)
        )
        # The output of softmax does not depend on the bias of the keys.
        np.testing.assert_allclose((ahead - back) / 2e-5, jnp.sum(slope * direction), atol=1e-6, rtol=1e-6)


@pytest.mark.parametrize("mechanism", ["softmax", "softmax-blockwise", "linear"])
@pytest.mark.parametrize("key_heads", [1, 2])
def test_dropout_of_weights_is_that_of_the_weights_of_every_head(mechanism, key_heads):
    layer = MultiHead(dropout=0.5)
    module, x, _ = made(layer, MECHANISMS[mechanism], key_heads=key_heads)
    call = jax.jit(lambda module, keys: jax.vmap(lambda key: module.causal(x, key=key)[0])(keys))
    expected = whole(module, x, None)
    np.testing.assert_allclose(
        whole(made(MultiHead(), MECHANISMS[mechanism], key_heads=key_heads)[0], x, None), expected
    )
    found = call(module, jax.random.split(jax.random.key(5), 4000))
    assert np.std(found, axis=0).min() > 1e-2
    assert np.abs(np.mean(found, axis=0) - expected).max() < 6 * np.std(found, axis=0).max() / 4000**0.5
    # The first token sees only itself. A head's output is zero with probability one half, and 2 v otherwise.
    v = np.repeat(np.asarray(module.v(x[:1])).reshape(key_heads, D // 2), 2 // key_heads, axis=0)
    heads = [[module.o(jnp.asarray(np.outer(on, np.ones(D // 2)) * 2 * v).reshape(1, D))[0] for on in np.ndindex(2, 2)]]
    distance = np.abs(np.asarray(found)[:, 0, None] - np.asarray(heads)).max(axis=-1)
    nearest = distance.argmin(axis=1)
    assert distance.min(axis=1).max() < 1e-4
    assert np.abs(np.bincount(nearest, minlength=4) / 4000 - 0.25).max() < 0.04


def test_biases_of_queries_keys_and_values_are_apart_from_those_of_other_maps():
    layer = MultiHead(qkv_bias=True, gate="channel")
    module = randomised(Attention(jax.random.key(0), D, 2, Softmax(), None, partial(Dense, bias=False), layer))
    assert [each.b is None for each in (module.q, module.k, module.v, module.gate, module.o)] == [False] * 3 + [
        True
    ] * 2
    x = jax.random.normal(jax.random.key(1), (T, D))
    np.testing.assert_allclose(whole(module, x, None), by_hand(module, layer, x, None, True, softmax), atol=1e-10)


def test_extra_inputs_of_low_rank_are_products_of_two_maps():
    layer = MultiHead(extra_rank=3)
    module, x, _ = made(layer, MECHANISMS["gated-linear"])
    full = made(MultiHead(), MECHANISMS["gated-linear"])[0]
    assert module.down["gate"].w.shape == (D, 3)
    for name in "qkvo":
        setattr(full, name, getattr(module, name))
    full.learned = module.learned
    full.tokens["gate"].w[...] = module.down["gate"].w[...] @ module.tokens["gate"].w[...]
    full.tokens["gate"].b[...] = module.tokens["gate"].b[...]
    np.testing.assert_allclose(whole(module, x, None), whole(full, x, None), atol=1e-10)
    assert list(made(layer, MECHANISMS["gated-delta"])[0].down) == []  # one number per token


def test_dropout_joins_the_vectors_of_the_values_with_the_same_weights():
    layer = MultiHead(dropout=0.5)
    module, x, _ = made(layer)
    position = Shaw(clip=2).create(jax.random.key(0), D, 2)
    keys = jax.random.split(jax.random.key(5), 4000)
    found = jax.jit(jax.vmap(lambda key: module.attend(x, None, Causal(), position, key=key)[0]))(keys)
    expected, _ = module.attend(x, None, Causal(), position)
    assert np.abs(np.mean(found, axis=0) - expected).max() < 6 * np.std(found, axis=0).max() / 4000**0.5


TOKENS = jnp.arange(9) % 5


def language(drawn=True, **fields):
    config = Language(**({"width": 8, "heads": 2, "layers": 4, "position": Rotary(), "dtype": "float64"} | fields))
    model = config.create(jax.random.key(0), Tokens(5, 12))
    return randomised(model, 7) if drawn else model


def decoded(model):
    state, found = model.start(len(TOKENS)), []
    step = jax.jit(lambda model, state, token: model.step(state, token))
    for token in TOKENS:
        logits, state = step(model, state, token)
        found.append(logits)
    return jnp.stack(found)


@pytest.mark.parametrize(
    "fields",
    [
        {"attention": LAYERS["all"]},
        {"attention": LAYERS["value residual"], "layers": 8},
        {"norm_output": True},
        {"norm_output": True, "norm_first": False},
        {"parallel": True},
        {"position": Pattern((Rotary(), ALiBi()))},
        {
            "mechanism": Pattern((MECHANISMS["gated-delta"], MECHANISMS["softmax"])),
            "attention": Pattern((MultiHead(head_norm="rms", convolution=4), MultiHead(gate="head", value_width=6))),
            "position": Pattern((Position(), Rotary())),
        },
    ],
    ids=["all", "residual", "sandwich", "output", "parallel", "positions", "hybrid"],
)
def test_a_language_model_decodes_as_it_reads(fields):
    model = language(**fields)
    np.testing.assert_allclose(decoded(model), jax.jit(lambda m: m(TOKENS))(model), atol=1e-10)


def first_block(config, x):
    """Returns one layer of a language model, without final norm, and its output."""
    model = randomised(config.create(jax.random.key(0), Tokens(5, 12)))
    layer = jax.tree.map(lambda leaf: leaf[0], model.decoder)
    return layer, jax.jit(lambda layer, x: layer(x, None)[0])(layer, x)


def normed(norm, x):
    centred = x - x.mean(-1, keepdims=True)
    level = np.sqrt((centred**2).mean(-1, keepdims=True) + norm.epsilon)
    return centred / level * number(norm.scale) + number(norm.shift)


@pytest.mark.parametrize("first", [True, False])
@pytest.mark.parametrize("output", [True, False])
@pytest.mark.parametrize("parallel", [True, False])
def test_norms_stand_where_they_are_asked_for(first, output, parallel):
    config = Language(width=8, heads=2, layers=1, norm_first=first, norm_output=output, parallel=parallel)
    x = jax.random.normal(jax.random.key(1), (T, D))
    layer, found = first_block(config, x)
    attention = lambda x: np.asarray(jax.jit(lambda x: layer.attention.causal(x)[0])(x))
    forward = lambda x: dense(layer.feedforward.outer, np.maximum(dense(layer.feedforward.inner, x), 0))

    def around(residual, f, x):
        y = f(normed(residual.norm, x) if first else x)
        y = x + (normed(residual.output_norm, y) if output else y)
        return y if first or output else normed(residual.norm, y)

    x = np.asarray(x, np.float64)
    if parallel:
        expected = around(layer.around_attention, lambda x: attention(x) + forward(x), x)
    else:
        expected = around(layer.around_feedforward, forward, around(layer.around_attention, attention, x))
    np.testing.assert_allclose(found, expected, atol=1e-10)


def test_a_module_refuses_what_its_layer_and_mechanism_cannot_compute():
    with pytest.raises(ValueError, match=r"^dropout=0.5 needs attention weights, which Retention.* does not compute$"):
        Attention(jax.random.key(0), D, 2, MECHANISMS["retention"], layer=MultiHead(dropout=0.5))
    module = Attention(jax.random.key(0), D, 2, Softmax(), layer=MultiHead(value_residual=True))
    x = jnp.ones((T, D))
    with pytest.raises(ValueError, match=r"first has shape \(7, 1\), but the values of this layer have shape \(7, 8\)"):
        module.causal(x, first=module.values(x)[:, :1])


@pytest.mark.slow
def test_a_value_residual_reads_the_values_of_the_first_layer():
    """The gradient of λ₂ of the last layer flows to the values of the first layer, also through a scan."""
    for count in (2, 8):
        model = language(layers=count, attention=MultiHead(value_residual=True))
        slopes = jax.grad(lambda model: jnp.sum(model(TOKENS) ** 2))(model)
        assert np.all(np.asarray(slopes.decoder.attention.residual[...]))
        only = jnp.zeros((count, 2)).at[0, 0].set(1.0).at[1:, 1].set(1.0)  # first layer: its own; others: the first's
        model.decoder.attention.residual[...] = only
        slopes = jax.grad(lambda model: jnp.sum(model(TOKENS) ** 2))(model)
        of_v = np.abs(np.asarray(slopes.decoder.attention.v.w[...])).max(axis=(1, 2))
        assert of_v[0] > 0
        np.testing.assert_array_equal(of_v[1:], 0)


def test_positions_by_layer_rotate_only_where_they_should():
    rotary = jax.jit(lambda model: model(TOKENS))
    made = lambda *entries: rotary(language(drawn=False, position=Pattern(entries)))
    both, none, mixed = made(Rotary(), Rotary()), made(Position(), Position()), made(Rotary(), Position())
    np.testing.assert_allclose(both, rotary(language(drawn=False)), atol=1e-10)
    np.testing.assert_allclose(none, rotary(language(drawn=False, position=Position())), atol=1e-10)
    assert min(np.abs(mixed - each).max() for each in (both, none)) > 1e-3


@pytest.mark.slow
def test_an_encoder_takes_layers_too():
    config = Classifier(
        width=8,
        heads=2,
        layers=2,
        attention=replace(LAYERS["all"], convolution=0),
        position=Position(),
        pool="token",
        dtype="float64",
    )
    model = config.create(jax.random.key(0), Classes(Tokens(5, 12), 3))
    slopes = jax.grad(lambda model: jnp.sum(model(TOKENS) ** 2))(model)
    assert all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(slopes))


@pytest.mark.parametrize(
    ("fields", "line"),
    [
        ({"gate_rank": 4}, "gate_rank=4 needs a gate; set gate"),
        ({"head_width": 0}, "head_width=0 must be a whole number of at least 1"),
        ({"convolution_bias": True}, "convolution_bias=True needs a convolution"),
        ({"norm_after_gate": True}, "norm_after_gate=True needs a gate"),
        ({"head_width": 4, "key_expansion": 0.5}, "key_expansion=0.5 has no effect with head_width=4"),
        ({"convolution": -1}, "convolution=-1 must be a number of tokens"),
        ({"dropout": 1.0}, "dropout=1.0 must be at least 0 and below 1"),
    ],
)
def test_a_layer_that_cannot_be_is_refused_in_one_line(fields, line):
    with pytest.raises(ValueError, match=f"^{line}"):
        MultiHead(**fields)


@pytest.mark.parametrize(
    ("fields", "line"),
    [
        ({"attention": MultiHead(value_heads=3)}, "model.attention.value_heads=3 must be a multiple of model.heads=2"),
        (
            {"attention": MultiHead(value_heads=4), "heads": 4, "key_heads": 2},
            "model.attention.value_heads=4 needs as many key heads as query heads",
        ),
        (
            {"attention": MultiHead(dropout=0.1), "mechanism": MECHANISMS["retention"]},
            "model.attention: dropout=0.1 needs attention weights, which Retention",
        ),
        (
            {
                "attention": Pattern((MultiHead(), MultiHead(dropout=0.1))),
                "mechanism": Pattern((Softmax(), MECHANISMS["retention"])),
            },
            "model.attention in layer 2: dropout=0.1 needs attention weights",
        ),
        ({"attention": Pattern((MultiHead(),) * 3)}, "model.attention=multi-head.3 has 3 layers, which must divide"),
        (
            {"attention": Pattern((MultiHead(value_residual=True), MultiHead(value_width=3)))},
            "model.attention: value_residual=True needs values of one size in all layers, got 8, 6",
        ),
        ({"attention": MultiHead(key_expansion=0.3)}, "model.attention.key_expansion=0.3 times a head's width 4 must"),
        ({"attention": MultiHead(head_width=3)}, "model.position=Rotary.* cannot rotate 3 components of a head"),
        ({"attention": MultiHead(key_heads=3)}, "model.key_heads=3 must divide model.heads=2"),
        ({"heads": 0, "attention": MultiHead(head_width=8)}, "model.heads=0 must be at least 1"),
        ({"parallel": True, "feedforward": 0}, "model.parallel=True needs feed-forward blocks"),
        ({"position": Pattern((Rotary(), Shaw())), "attention": MultiHead(value_width=3)}, "model.position=Shaw.*wide"),
        (
            {"position": Pattern((Position(), Rotary())), "mechanism": Pattern((Softmax(), MECHANISMS["forgetting"]))},
            None,
        ),
        (
            {
                "position": Pattern((Position(), ALiBi())),
                "mechanism": Pattern((Softmax(), MECHANISMS["gated-delta"])),
            },
            "model.position=ALiBi.*is not supported by the decoder's GatedDelta.* in layer 2",
        ),
    ],
)
def test_what_does_not_fit_is_refused_with_the_field_and_the_layer(fields, line):
    make = lambda: Language(**({"width": 8, "heads": 2, "layers": 4, "position": Rotary()} | fields))
    if line is None:
        make()
        return
    with pytest.raises(ValueError, match=f"^{line}"):
        make()


def test_roles_are_checked_too():
    with pytest.raises(ValueError, match=r"^model.attention: convolution=4 is causal, but encoder attention sees all"):
        Classifier(width=8, heads=2, attention=MultiHead(convolution=4))
    with pytest.raises(ValueError, match=r"^model.parallel=True is not supported with cross-attention"):
        Transformer(width=8, heads=2, parallel=True)
    with pytest.raises(ValueError, match=r"^model.parallel=True is not supported with cross-attention"):
        Detr(width=8, heads=2, parallel=True)
    with pytest.raises(ValueError, match=r"adds to the input, which layers share; use encodings that rotate"):
        Language(width=8, heads=2, position=Pattern((Position(), Sinusoidal())))
    with pytest.raises(ValueError, match=r"^model.attention=.* is not supported by Detr: its keys and values have"):
        Detr(width=8, heads=2, attention=MultiHead(exclude_self=True))


def test_layers_with_key_heads_of_their_own_stand_beside_others():
    few = made(MultiHead(key_heads=1), heads=4)[0]
    same = made(MultiHead(), heads=4, key_heads=1)[0]
    x = jax.random.normal(jax.random.key(1), (T, D))
    np.testing.assert_allclose(whole(few, x, None), whole(same, x, None), atol=1e-12)
    model = language(heads=4, attention=Pattern((MultiHead(key_heads=1), MultiHead())))
    np.testing.assert_allclose(decoded(model), jax.jit(lambda m: m(TOKENS))(model), atol=1e-10)


@pytest.mark.parametrize("scale", [0.0, 1e-3, 600.0])
def test_the_own_value_is_excluded_in_half_precision_too(scale):
    module = Attention(jax.random.key(0), D, 2, Softmax(), layer=MultiHead(exclude_self=True, skip=True))
    x = scale * jax.random.normal(jax.random.key(1), (T, D), jnp.float16)
    value, slope = jax.jit(jax.value_and_grad(lambda x: jnp.sum(module.causal(x)[0].astype(jnp.float32))))(x)
    assert np.isfinite(value)
    assert np.isfinite(slope).all()


def test_maps_of_a_layer_with_fewer_heads_are_repeated():
    model = language(attention=Pattern((MultiHead(value_heads=4), MultiHead())))
    maps = attention_maps(model, TOKENS)["decoder"]
    many, few = (layer.attention.heads for layer in unstack_layers(model.decoder)[:2])
    assert (many, few, maps.shape[1]) == (4, 2, 4)
    np.testing.assert_array_equal(maps[1::2, 0::2], maps[1::2, 1::2])
    assert np.abs(maps[1::2, 0] - maps[1::2, 2]).max() > 1e-3
    # They equal the maps of single layers.
    x = model.embed(model.target, TOKENS, model.target_position, np.arange(len(TOKENS)), None, None)
    for n, layer in enumerate(unstack_layers(with_maps(model).decoder)):
        x, seen = layer(x, None, model.target_position)
        (alone,) = seen.values()
        np.testing.assert_allclose(maps[n, :: 4 // len(alone)], alone, atol=1e-12)
