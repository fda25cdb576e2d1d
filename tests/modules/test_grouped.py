"""Tests of query heads that share keys and values."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attnlab.analysis.cost import size
from attnlab.mechanisms import MECHANISMS, Softmax
from attnlab.mechanisms.query_heads import query_head_axes
from attnlab.modules.attention import Attention
from attnlab.modules.position import POSITIONS

from .test_attention import token_by_token, whole

HEADS, WIDTH = 4, 16


def made(key_heads, mechanism=None):
    return jax.jit(lambda: Attention(jax.random.key(0), WIDTH, HEADS, mechanism or Softmax(), key_heads))()


def repeated(grouped, key_heads, mechanism):
    """Returns plain attention equal to a grouped one: the weights of each key head are repeated for its query heads."""
    plain, times = made(HEADS, mechanism), HEADS // key_heads

    def spread(plain, grouped):
        for into, leaf in ((plain.w, np.asarray(grouped.w[...])), (plain.b, np.asarray(grouped.b[...]))):
            by_head = leaf.reshape(*leaf.shape[:-1], key_heads, -1)
            into.set_value(jnp.asarray(np.repeat(by_head, times, axis=-2).reshape(*leaf.shape[:-1], -1)))

    for one, other in ((plain.k, grouped.k), (plain.v, grouped.v)):
        spread(one, other)
    for name in plain.tokens:
        spread(plain.tokens[name], grouped.tokens[name])
    for name in plain.learned:
        plain.learned[name].set_value(jnp.asarray(np.repeat(np.asarray(grouped.learned[name][...]), times, axis=0)))
    plain.q, plain.o = grouped.q, grouped.o
    return plain


def x(T=5):
    return jax.random.normal(jax.random.key(1), (T, WIDTH))


def one_that(has):
    """Returns the first mechanism with a property, among those that decode and have no constants per head."""
    return [name for name, each in MECHANISMS.items() if has(each) and each.traits.decodes and not each.heads(HEADS)][
        :1
    ]


SHARING = ["softmax", "short-convolution", *one_that(lambda each: each.tokens), *one_that(lambda each: each.learned)]


@pytest.mark.parametrize(("name", "key_heads"), [("softmax", 1), *((name, 2) for name in SHARING)])
def test_it_is_plain_attention_with_keys_and_values_repeated(name, key_heads):
    mechanism = MECHANISMS[name].with_length(8)
    grouped = made(key_heads, mechanism)
    plain = repeated(grouped, key_heads, mechanism)
    np.testing.assert_allclose(whole(grouped, x())[0], whole(plain, x())[0], atol=1e-6)


def test_as_many_key_heads_as_heads_is_plain_attention():
    a, b = made(HEADS), made(None)
    for one, other in zip(jax.tree.leaves(a), jax.tree.leaves(b), strict=True):
        np.testing.assert_array_equal(one, other)
    np.testing.assert_array_equal(whole(a, x())[0], whole(b, x())[0])


def along(axes, state, is_leaf):
    """Returns the axes for `jax.vmap`, and the part of the state that each axis belongs to."""
    leaves, tree = jax.tree.flatten(axes, is_leaf=is_leaf)
    return leaves, tree.flatten_up_to(state)


@pytest.mark.parametrize("name", [name for name in MECHANISMS if MECHANISMS[name].traits.decodes])
def test_the_cache_has_one_state_per_key_head(name):
    mechanism = MECHANISMS[name].with_length(8)
    grouped, plain = (jax.eval_shape(lambda n=n: made(n, mechanism)) for n in (1, None))
    states = [jax.eval_shape(lambda m=m: m.start(8, jnp.float32)) for m in (grouped, plain)]
    none = lambda axis: axis is None
    parts = [
        (none(a), size(kept))
        for a, kept in zip(*along(query_head_axes(states[0]), states[0], is_leaf=none), strict=True)
    ]
    assert size(states[1]) == sum(numbers * (HEADS if shared else 1) for shared, numbers in parts)
    # Tracing suffices: it fails if a part of the state gets a query axis.
    assert jax.eval_shape(token_by_token, grouped, x()).shape == (5, WIDTH)


@pytest.mark.parametrize("name", [name for name in MECHANISMS if MECHANISMS[name].traits.decodes])
def test_decoding_in_blocks_or_single_tokens_equals_the_parallel_form(name):
    grouped = made(2, MECHANISMS[name].with_length(8))
    all_at_once = whole(grouped, x())[0]
    np.testing.assert_allclose(token_by_token(grouped, x()), all_at_once, atol=1e-5)

    @jax.jit
    def in_parts(module, x):
        first, state = module.extend(x[:3], module.start(8, jnp.float32), jnp.arange(3))
        return jnp.concatenate([first, module.extend(x[3:], state, jnp.arange(3, 5))[0]])

    np.testing.assert_allclose(in_parts(grouped, x()), all_at_once, atol=1e-5)


@pytest.mark.parametrize("name", ["shaw", "alibi", "t5", "rotary"])
def test_positions_are_those_of_query_heads(name):
    grouped = made(2)
    plain = repeated(grouped, 2, Softmax())
    position = POSITIONS[name].create(jax.random.key(2), WIDTH, HEADS, 1, causal=True)
    run = jax.jit(lambda module, x: module.causal(x, None, position)[0])
    np.testing.assert_allclose(run(grouped, x()), run(plain, x()), atol=1e-6)
