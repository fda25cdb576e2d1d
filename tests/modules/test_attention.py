import inspect
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attnlab.analysis.maps import with_maps
from attnlab.mechanisms import Linear, LocalP, Softmax, Synthesizer
from attnlab.modules.attention import NO_POSITION, Attention
from attnlab.modules.position import ALiBi, Rotary, Shaw, XPos
from attnlab.ops.mask import KeyPadding
from attnlab.ops.score import location

mechanisms = pytest.mark.parametrize("mechanism", [Softmax(), Linear()], ids=["softmax", "linear"])


@partial(jax.jit, static_argnums=0)
def built(make):
    return make()


def made(mechanism, heads=2, **fields):
    module = built(lambda: Attention(jax.random.key(0), 8, heads, mechanism, **fields))
    return module, jax.random.normal(jax.random.key(1), (6, 8))


whole = jax.jit(lambda module, *given: module.causal(*given))
attend = jax.jit(lambda module, *given, **places: module.attend(*given, **places))


@jax.jit
def token_by_token(module, x):
    def step(state, here):
        y, state = module.extend(here[0][None], state, here[1][None])
        return state, y[0]

    return jax.lax.scan(step, module.start(len(x), x.dtype), (x, jnp.arange(len(x))))[1]


def test_softmax_attention_is_the_formula_written_out():
    module, x = made(Softmax())
    q, k, v = (np.asarray(p(x)).reshape(6, 2, 4) for p in (module.q, module.k, module.v))
    heads = []
    for h in range(2):
        scores = q[:, h] @ k[:, h].T / 2.0
        share = np.exp(scores)
        heads.append(share / share.sum(axis=1, keepdims=True) @ v[:, h])
    expected = module.o(jnp.asarray(np.concatenate(heads, axis=1)))
    np.testing.assert_allclose(attend(module, x)[0], expected, atol=1e-6)


@mechanisms
def test_without_positions_and_masks_it_is_permutation_equivariant(mechanism):
    module, x = made(mechanism)
    order = jnp.array([3, 1, 5, 0, 2, 4])
    np.testing.assert_allclose(attend(module, x[order])[0], attend(module, x)[0][order], atol=1e-6)
    assert np.abs(whole(module, x[order])[0] - whole(module, x)[0][order]).max() > 1e-3


@mechanisms
def test_decoding_equals_the_parallel_form(mechanism):
    module, x = made(mechanism)
    np.testing.assert_allclose(token_by_token(module, x), whole(module, x)[0], atol=1e-6)


@mechanisms
def test_cross_attention_takes_a_memory_of_any_length_and_ignores_its_padding(mechanism):
    module, x = made(mechanism)
    context = jax.random.normal(jax.random.key(2), (9, 8))
    y, _ = attend(module, x, context, KeyPadding(jnp.arange(9) < 5))
    np.testing.assert_allclose(y, attend(module, x, context[:5])[0], atol=1e-6)


def test_queries_of_cross_attention_have_their_own_positions():
    """A window around the query covers the same keys in the parallel form and when decoding."""
    from attnlab.ops.mask import Window

    module, x = made(Softmax())
    context = jax.random.normal(jax.random.key(2), (9, 8))
    last = attend(module, x, context, Window(2, 2))[0]
    np.testing.assert_array_equal(last, attend(module, x, context, Window(2, 2), i=jnp.arange(3, 9))[0])
    y, _ = attend(module, x, context, Window(2, 2), i=jnp.arange(6))
    assert np.abs(y - last).max() > 1e-3
    for t in range(6):
        one = attend(module, x[t : t + 1], context, Window(2, 2), i=jnp.array([t]))[0]
        np.testing.assert_allclose(one[0], y[t], atol=1e-6)
        near = attend(module, x[t : t + 1], context[max(0, t - 1) : t + 2])[0]
        np.testing.assert_allclose(near[0], y[t], atol=1e-6)


def test_rotary_positions_depend_on_distance_alone():
    module, x = made(Softmax())
    run = jax.jit(lambda i: module.attend(x, position=Rotary(), i=i, j=i)[0])
    np.testing.assert_allclose(run(jnp.arange(6) + 50), run(jnp.arange(6)), atol=1e-5)
    assert np.abs(run(jnp.arange(6)) - attend(module, x)[0]).max() > 1e-3


@mechanisms
@pytest.mark.parametrize("key_heads", [2, 1])
def test_a_module_with_maps_computes_the_same(mechanism, key_heads):
    module, x = made(mechanism, key_heads=key_heads)
    y, seen = whole(with_maps(module), x)
    np.testing.assert_allclose(y, whole(module, x)[0], atol=1e-6)
    assert seen.shape == (2, 6, 6)
    np.testing.assert_allclose(seen.sum(axis=-1), np.ones((2, 6)), atol=1e-5)
    assert not np.triu(seen[0], 1).any()
    assert np.abs(seen[0] - seen[1]).max() > 1e-3
    assert attend(module, x)[1] is None
    np.testing.assert_allclose(token_by_token(module, x), y, atol=1e-6)


@pytest.mark.parametrize(
    ("heads", "key_heads", "line"),
    [
        (3, None, r"model.heads=3 must divide model.width=8"),
        (4, 3, r"model.key_heads=3 must divide model.heads=4"),
        (4, 0, r"model.key_heads=0 must be at least 1"),
    ],
)
def test_heads_must_divide_the_width(heads, key_heads, line):
    with pytest.raises(ValueError, match=line):
        made(Softmax(), heads=heads, key_heads=key_heads)


def test_inputs_of_another_width_are_refused():
    module, x = made(Softmax())
    with pytest.raises(ValueError, match=r"x has width 7, expected model.width=8"):
        module.attend(x[:, :7], x)
    with pytest.raises(ValueError, match=r"context has width 4, expected model.width=8"):
        module.attend(x, x[:, :4])
    with pytest.raises(ValueError, match=r"x has width 4, expected model.width=8"):
        module.causal(x[:, :4])


def test_a_batch_is_refused_with_the_line_that_computes_it():
    attention, x = made(Softmax())
    batch = jnp.stack([x, 2 * x])
    with pytest.raises(ValueError, match=r"expected x \[T 8\] of one example, got shape \(2, 6, 8\); ") as refused:
        inspect.unwrap(Attention._fits)(attention, "x", batch)  # without the type checks of the tests
    line = str(refused.value).rpartition("for example ")[2]
    found, _ = eval(line, {"jax": jax, "attention": attention, "x": batch})
    np.testing.assert_allclose(found, [attention.attend(one)[0] for one in batch], atol=1e-6)


@pytest.mark.parametrize("position", [XPos(), ALiBi(), Shaw()], ids=str)
def test_a_position_that_a_mechanism_does_not_support_is_refused_naming_both(position):
    module, x = made(Linear())
    placed = position.create(jax.random.key(3), 8, 2, causal=True)
    with pytest.raises(NotImplementedError, match=rf"Linear.*does not support {type(position).__name__}\("):
        module.attend(x, position=placed)


def test_padding_affects_neither_outputs_nor_gradients():
    module, x = made(Softmax())
    keep = jnp.arange(6) < 4
    poisoned = x.at[4:].set(jnp.nan)
    position = Shaw().create(jax.random.key(3), 8, 2)

    @jax.jit
    def run(x):
        loss = lambda x: jnp.sum(module.causal(x, keep, position)[0][:4] ** 2)
        return jax.value_and_grad(loss)(x)

    value, gradient = run(poisoned)
    assert np.isfinite(value)
    np.testing.assert_allclose(value, jnp.sum(module.causal(x[:4], None, position)[0] ** 2), rtol=1e-5)
    assert np.isfinite(gradient[:4]).all()
    assert NO_POSITION.bias(2) is None


@pytest.mark.parametrize(
    "mechanism", [Softmax(), LocalP(width=2), Softmax(score=location, length=6), Synthesizer(length=6)], ids=str
)
@pytest.mark.parametrize("keep", [[0, 0, 1, 1, 1, 1], [0, 1, 0, 1, 1, 1]], ids=["left", "within"])
def test_extra_values_are_averaged_with_the_same_weights_under_any_padding(mechanism, keep):
    module, x = made(mechanism)
    keep, position = np.array(keep, bool), Shaw().create(jax.random.key(3), 8, 2)
    alone = whole(module, x[keep], None, position)[0]
    np.testing.assert_allclose(whole(module, x, jnp.asarray(keep), position)[0][keep], alone, atol=1e-6)
    # Every row except the first also differs from the output without the vectors that are added to the values.
    assert np.abs(alone - whole(module, x[keep])[0])[1:].max(axis=1).min() > 1e-3


@pytest.mark.parametrize("key_heads", [1, 2])
def test_a_full_cache_is_refused(key_heads):
    module = Attention(jax.random.key(0), 8, 2, Softmax(), key_heads)
    x, state = jnp.ones((1, 8)), module.start(2, jnp.float32)
    extend = jax.jit(lambda x, state, i: module.extend(x, state, i)[1])
    for t in range(2):
        state = extend(x, state, np.array([t], np.int32))
    with pytest.raises(ValueError, match="the cache has room for 2 tokens, got 3: start it with length=3 or more"):
        module.extend(x, state, np.array([2]))


@pytest.mark.parametrize("mechanism", [Softmax(), Softmax(block=2), Linear()], ids=str)
def test_empty_inputs_give_empty_outputs(mechanism):
    module = Attention(jax.random.key(0), 8, 2, mechanism)
    for keep in (None, jnp.ones(0, bool)):
        assert module.causal(jnp.ones((0, 8)), keep)[0].shape == (0, 8)
    assert module.attend(jnp.ones((0, 8)), jnp.ones((3, 8)))[0].shape == (0, 8)
