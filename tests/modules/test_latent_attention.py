"""Checks multi-head latent attention: its equations, and decoding without keys and values."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attnlab.analysis.cost import size
from attnlab.mechanisms import MECHANISMS, Softmax
from attnlab.mechanisms.window import Local
from attnlab.models import Language, Transformer
from attnlab.modules.latent import Latent
from attnlab.modules.latent_attention import LatentAttention
from attnlab.modules.position import ALiBi, Position, Rotary, Shaw
from attnlab.ops.mask import Causal, KeyPadding
from attnlab.ops.score import SCORES
from attnlab.pattern import Pattern
from attnlab.tasks.base.shapes import Pairs, Tokens
from tests.modules.test_multi_head import dense, number, randomised, rms

pytestmark = pytest.mark.usefixtures("x64")
D, T, H = 8, 7, 2
LAYERS = {
    "default": Latent(rank=5, rotary_width=4),
    "low queries": Latent(rank=5, rotary_width=4, query_rank=3, head_width=3, value_width=6),
    "no rotation": Latent(rank=3, rotary_width=0),
}
layers = pytest.mark.parametrize("layer", LAYERS.values(), ids=LAYERS)


def made(layer, mechanism=Softmax()):
    module = randomised(LatentAttention(jax.random.key(0), D, H, mechanism, layer))
    return module, jax.random.normal(jax.random.key(1), (T, D))


def rotated(x, i):
    """Rotates pairs (2n, 2n+1), as complex numbers, by the angle i · 10000^(−2n/K)."""
    K = len(x)
    turned = (x[0::2] + 1j * x[1::2]) * np.exp(1j * i * 10000.0 ** (-np.arange(0, K, 2) / K))
    return np.stack([turned.real, turned.imag], axis=1).reshape(K)


def by_hand(module, layer, x, rotary=True):
    x = np.asarray(x, np.float64)
    own, V = module.own_width, module.value_width
    latent = rms(dense(module.latent, x), number(module.latent_norm.scale))
    q = x if layer.query_rank is None else rms(dense(module.q_down, x), number(module.q_down_norm.scale))
    q = dense(module.q, q).reshape(T, H, -1)
    k, v = (latent @ number(each.w) for each in (module.k, module.v))
    k, v = k.reshape(T, H, own), v.reshape(T, H, V)
    shared = dense(module.shared, x) if layer.rotary_width else np.zeros((T, 0))
    turn = rotated if rotary and layer.rotary_width else lambda x, i: x
    y = np.zeros((T, H, V))
    for h in range(H):
        for t in range(T):
            one = np.concatenate([q[t, h, :own], turn(q[t, h, own:], t)])
            scores = np.array([np.concatenate([k[s, h], turn(shared[s], s)]) @ one for s in range(t + 1)])
            weights = np.exp(scores / np.sqrt(len(one)))
            y[t, h] = weights / weights.sum() @ v[: t + 1, h]
    return dense(module.o, y.reshape(T, -1))


def position(layer):
    return Rotary() if layer.rotary_width else Position()


@layers
def test_it_is_the_equations_written_out(layer):
    module, x = made(layer)
    found, _ = jax.jit(lambda module, x: module.causal(x, None, position(layer)))(module, x)
    np.testing.assert_allclose(found, by_hand(module, layer, x), atol=1e-10)


MECHANISMS_ = {
    "softmax": Softmax(),
    "dot": Softmax(score=SCORES["dot"]),
    "blockwise": Softmax(block=4),
    "sink": Softmax(sink="learned"),
    "window": Local(3, 1),
}


@layers
@pytest.mark.parametrize("mechanism", MECHANISMS_.values(), ids=MECHANISMS_)
def test_decoding_from_the_small_vectors_equals_computing_keys_and_values(layer, mechanism):
    module, x = made(layer, mechanism)
    expected, _ = jax.jit(lambda module, x: module.causal(x, None, position(layer)))(module, x)

    @partial(jax.jit, static_argnums=2)
    def steps(module, x, size):
        state, found = module.start(T, x.dtype), []
        for at in range(0, T, size):
            y, state = module.extend(
                x[at : at + size], state, jnp.arange(T, dtype=jnp.int32)[at : at + size], position(layer)
            )
            found.append(y)
        return jnp.concatenate(found)

    for count in (1, 3):
        np.testing.assert_allclose(steps(module, x, count), expected, atol=1e-10)


def test_the_cache_holds_the_small_vectors_only():
    module, x = made(LAYERS["default"])
    sizes = [size(jax.eval_shape(lambda n=n: module.start(n, jnp.float32))) for n in (10, 11)]
    assert sizes[1] - sizes[0] == 4 * (5 + 4) + 8  # and two integers, position and segment
    with pytest.raises(ValueError, match="the cache has room for 3 tokens, got 7"):
        module.extend(x, module.start(3, x.dtype), jnp.arange(T, dtype=jnp.int32))
    y, _ = jax.jit(lambda module, x: module.extend(x, module.start(3, x.dtype), jnp.arange(T, dtype=jnp.int32)))(
        module, x
    )
    assert np.isfinite(y[:3]).all()
    assert np.isnan(y[3:]).all()


def test_a_bias_of_positions_is_added_while_decoding_too():
    module, x = made(LAYERS["no rotation"])
    at = jnp.arange(T, dtype=jnp.int32)
    expected, _ = jax.jit(lambda module, x: module.causal(x, None, ALiBi()))(module, x)
    found, _ = jax.jit(lambda module, x: module.extend(x, module.start(T, x.dtype), at, ALiBi()))(module, x)
    np.testing.assert_allclose(found, expected, atol=1e-10)


def test_vectors_that_join_keys_and_values_are_refused_in_every_form():
    # The widths agree in both forms, so that without the refusal decoding would return numbers, of another formula.
    module = LatentAttention(jax.random.key(0), 16, H, Softmax(), Latent(4, None, 4, 4, 8))
    x, at = jnp.ones((T, 16)), jnp.arange(T, dtype=jnp.int32)
    shaw = Shaw().create(jax.random.key(1), 16, H)
    for form in (module.causal, lambda x, _, shaw: module.extend(x, module.start(T, x.dtype), at, shaw)):
        with pytest.raises(NotImplementedError, match=r"latent attention does not support Shaw\(clip=16\): decoding"):
            form(x, None, shaw)


def test_models_have_it_in_some_layers_and_for_other_sequences():
    mechanism = Pattern((MECHANISMS["gated-delta"], Softmax()))
    layers = Pattern((Latent(), LAYERS["default"]))
    with pytest.raises(ValueError, match=r"^model.attention in layer 1: latent attention needs softmax with products"):
        Language(width=32, heads=2, layers=2, mechanism=mechanism, attention=layers)
    config = Language(width=8, heads=2, layers=4, attention=LAYERS["default"], position=Rotary(), dtype="float64")
    model = randomised(jax.jit(lambda: config.create(jax.random.key(0), Tokens(5, 12)))())
    tokens = jnp.arange(9) % 5
    state, found = model.start(9), []
    step = jax.jit(lambda model, state, token: model.step(state, token))
    for token in tokens:
        logits, state = step(model, state, token)
        found.append(logits)
    np.testing.assert_allclose(jnp.stack(found), jax.jit(lambda m: m(tokens))(model), atol=1e-10)
    both = Transformer(width=8, heads=2, layers=1, attention=LAYERS["no rotation"], dtype="float64")
    keep = KeyPadding(jnp.ones(9, bool)).keep
    created = lambda: both.create(jax.random.key(0), Pairs(5, 5, 9, 9))
    assert np.isfinite(jax.jit(lambda: created()(tokens, tokens, keep, keep))()).all()


@pytest.mark.parametrize(
    ("fields", "line"),
    [
        ({"attention": Latent(rank=9)}, "model.attention.rank=9 must be at most model.width=8"),
        ({"attention": Latent(rank=4, query_rank=9)}, "model.attention.query_rank=9 must be at most model.width=8"),
        (
            {"attention": Latent(rank=4), "key_heads": 1},
            "model.key_heads=1 must be model.heads=2 for latent attention",
        ),
        ({"attention": Latent(rank=4), "mechanism": MECHANISMS["linear"]}, "model.attention: latent attention needs"),
        ({"attention": Latent(rank=4, rotary_width=0), "position": Rotary()}, "model.position=.* rotates nothing"),
        ({"attention": Latent(rank=4, rotary_width=3), "position": Rotary()}, "model.position=.* cannot rotate 3 comp"),
        ({"attention": Latent(rank=4, rotary_width=4), "position": Shaw()}, "model.position=.* needs multi-head"),
    ],
)
def test_what_does_not_fit_is_refused_with_the_field(fields, line):
    with pytest.raises(ValueError, match=f"^{line}"):
        Language(**({"width": 8, "heads": 2, "layers": 2} | fields))


def test_values_of_the_first_layer_are_its_own():
    module, x = made(LAYERS["default"])
    np.testing.assert_allclose(module.values(x), module.keys_values(x)["v"].reshape(T, -1), atol=1e-12)
    with pytest.raises(NotImplementedError, match="latent attention computes keys and values from one vector"):
        module.keys_values(x, x)


def test_reading_another_sequence_is_attending_to_its_keys_and_values():
    module, x = made(LAYERS["no rotation"])
    attend = jax.jit(lambda module, *x: module.attend(*x)[0])
    causal = jax.jit(lambda module, x: module.causal(x)[0])
    found, expected = attend(module, x[:3], x, Causal()), causal(module, x[:3])
    np.testing.assert_allclose(attend(module, x[-1:], x)[0], causal(module, x)[-1], atol=1e-12)
    assert np.abs(found - expected).max() > 1e-3  # aligned at the ends: more keys are visible


@pytest.mark.parametrize("name", ["rank", "query_rank", "head_width", "value_width"])
def test_sizes_are_checked(name):
    with pytest.raises(ValueError, match=f"^{name}=0 must be a whole number of at least 1"):
        Latent(**{name: 0})
    with pytest.raises(ValueError, match=r"^rotary_width=-1 must be at least 0"):
        Latent(rotary_width=-1)
