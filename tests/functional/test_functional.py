"""Checks one call for batches and heads against loops over single heads, jax's own softmax, and steps with a cache."""

import subprocess
import sys
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import attnlab
from attnlab.mechanisms import MECHANISMS
from attnlab.mechanisms.inputs import shape_of
from attnlab.ops.mask import Causal, Full, KeyPadding, QueryPadding, Segments, Window
from tests.mechanisms.contract import SMALL, every, honoured, stateful

B, H, G, K, V = 2, 4, 2, 4, 6
T = 7


def draw(mechanism, T=T, S=None, heads=H, key_heads=G, dtype=np.float64, seed=0):
    """Returns (q, k, v, extras) of B examples and all heads."""
    rng, S = np.random.default_rng(seed), T if S is None else S
    normal = lambda *shape: rng.standard_normal(shape).astype(dtype)
    extra = {name: normal(B, S, key_heads, *shape_of(x, K, V)) for name, x in mechanism.tokens.items()}
    extra |= {name: normal(B, T, heads, *shape_of(x, K, V)) for name, x in mechanism.queries.items()}
    keys = jax.random.split(jax.random.key(seed), key_heads)
    learned = jax.vmap(lambda key: mechanism.initial(key, K, V))(keys)
    extra |= {name: np.asarray(x).astype(dtype) for name, x in learned.items()}
    return normal(B, T, heads, K), normal(B, S, key_heads, K), normal(B, S, key_heads, V), extra


def one_head(mechanism, given, b, h, key_heads=G):
    """Returns the arrays of one example and one query head, with the constants of its key head."""
    q, k, v, extra = given
    g = h // (q.shape[2] // key_heads)
    own = {
        name: x[b, :, h] if name in mechanism.queries else x[b, :, g] if name in mechanism.tokens else x[g]
        for name, x in extra.items()
    }
    constants = {name: x[g] for name, x in mechanism.heads(key_heads).items()}
    return q[b, :, h], k[b, :, g], v[b, :, g], own | constants


def loop(mechanism, given, function):
    """Returns the outputs of `function(q, k, v, extra, b)` for every example and head, [B T H V]."""
    heads = given[0].shape[2]
    one = lambda b, h: function(*one_head(mechanism, given, b, h), b)
    whole = lambda: [[one(b, h) for h in range(heads)] for b in range(B)]
    return np.stack([np.stack(heads, axis=1) for heads in jax.device_get(jax.jit(whole)())])


def near(a, b, tolerance=1e-10):
    np.testing.assert_allclose(np.asarray(a, np.float64), np.asarray(b, np.float64), rtol=0, atol=tolerance)


@stateful
def test_it_is_a_loop_over_examples_and_heads_and_steps_with_a_cache_are_the_whole(name, x64):
    mechanism = SMALL[name]
    q, k, v, extra = given = draw(mechanism)
    y = jax.jit(partial(attnlab.attention, mechanism=mechanism, causal=True))(q, k, v, **extra)
    causal = jax.jit(lambda q, k, v, extra: mechanism.causal(q, k, v, **extra))
    near(y, loop(mechanism, given, lambda q, k, v, extra, _: causal(q, k, v, extra)))

    cache = attnlab.init_cache(mechanism, B, T, H, K, value_width=V, key_heads=G)
    step, parts = jax.jit(attnlab.decode_step), []
    per_token = {*mechanism.tokens, *mechanism.queries}
    for rows in (slice(0, 3), slice(3, 4), slice(4, T)):
        few = {name: x[:, rows] if name in per_token else x for name, x in extra.items()}
        part, cache = step(cache, q[:, rows], k[:, rows], v[:, rows], **few)
        parts.append(part)
    near(jnp.concatenate(parts, axis=1), y)


@every
def test_under_any_mask_it_is_a_loop_over_examples_and_heads(name, x64):
    mechanism = SMALL[name]
    honoured(mechanism, Full())
    q, k, v, extra = given = draw(mechanism)
    keep = np.arange(T) < np.array([[T], [T - 2]])
    y = jax.jit(partial(attnlab.attention, mechanism=mechanism))(q, k, v, keep=keep, query_keep=keep, **extra)
    attend = jax.jit(
        lambda q, k, v, extra, keep: mechanism.attend(q, k, v, KeyPadding(keep) & QueryPadding(keep), **extra)
    )
    near(y, loop(mechanism, given, lambda q, k, v, extra, b: attend(q, k, v, extra, keep[b])))


theirs = jax.nn.dot_product_attention


def beside_jax(ours, q, k, v, masks, biases):
    """Yields pairs of attnlab's and jax's outputs for T < S, for every way to call both."""
    T, S = q.shape[1], k.shape[1]
    first = jnp.tril(jnp.ones((T, S), bool))  # jax aligns the first query with the first key
    last = (jnp.arange(S)[None, :] <= jnp.arange(S - T, S)[:, None])[None, None]
    lengths, asked = jnp.array([S, S - 3], jnp.int32), jnp.array([T, 2], jnp.int32)
    keep, asks = jnp.arange(S)[None] < lengths[:, None], jnp.arange(T)[None] < asked[:, None]
    yield ours(q, k, v), theirs(q, k, v)
    yield ours(q[0], k[0], v[0]), theirs(q[0], k[0], v[0])
    yield ours(q, k[:, :T], v[:, :T], causal=True), theirs(q, k[:, :T], v[:, :T], is_causal=True)
    yield ours(q, k, v, mask=first), theirs(q, k, v, is_causal=True)
    yield ours(q, k, v, causal=True), theirs(q, k, v, mask=last)
    for mask, bias in zip(masks, biases, strict=True):
        yield ours(q, k, v, mask=mask, bias=bias), theirs(q, k, v, mask=mask, bias=bias)
    one = {"mask": mask[1], "bias": bias[1]}
    yield ours(q[1], k[1], v[1], **one), theirs(q[1], k[1], v[1], **one)
    yield ours(q, k, v, mask=mask, bias=bias, causal=True), theirs(q, k, v, mask=mask & last, bias=bias)
    mask, bias = mask[:, 0], bias[:, 0]
    yield ours(q, k, v, mask=mask, bias=bias), theirs(q, k, v, mask=mask[:, None], bias=bias[:, None])
    yield ours(q, k, v, mask=mask[0]), theirs(q, k, v, mask=mask[:1, None])
    yield ours(q, k, v, keep=keep), theirs(q, k, v, key_value_seq_lengths=lengths)
    both = {"query_seq_lengths": asked, "key_value_seq_lengths": lengths}
    yield ours(q, k, v, keep=keep, query_keep=asks), theirs(q, k, v, **both)
    back = lambda run: jax.grad(lambda *x: jnp.sum(jnp.sin(run(*x))), argnums=(0, 1, 2))(q, k, v)
    yield from zip(back(partial(ours, mask=mask)), back(partial(theirs, mask=mask[:, None])), strict=True)


@pytest.mark.parametrize("name", ["softmax", "softmax-blockwise"])
@pytest.mark.parametrize("heads", ["4-4", "4-2", "4-1"])
def test_softmax_is_that_of_jax(name, heads, x64):
    T, S, (heads, key_heads) = 5, 8, map(int, heads.split("-"))
    rng = np.random.default_rng(1)
    normal = lambda *shape: rng.standard_normal(shape)
    masks = [rng.random((*shape, T, S)) < 0.7 for shape in ((1, 1), (B, 1), (1, heads), (B, heads))]
    biases = [normal(*mask.shape) for mask in masks]
    for mask in masks:
        mask[..., 0] = True  # jax returns the mean of all values for a query without keys
    arrays = normal(B, T, heads, K), normal(B, S, key_heads, K), normal(B, S, key_heads, K)
    run = jax.jit(lambda *arrays: list(beside_jax(partial(attnlab.attention, mechanism=name), *arrays)))
    for ours, jaxs in run(*arrays, masks, biases):
        near(ours, jaxs, 1e-6)  # jax computes softmax in float32 even for float64


@pytest.mark.parametrize("name", ["softmax", "linear", "gated-delta"])
def test_padding_and_segments_are_those_of_single_sequences(name, x64):
    mechanism = MECHANISMS[name]
    q, k, v, extra = draw(mechanism, 8)
    run = jax.jit(partial(attnlab.attention, mechanism=name, causal=True))
    cut = lambda b, rows: {n: x[b : b + 1, rows] if n in mechanism.tokens else x for n, x in extra.items()}
    alone = lambda b, rows: run(q[b : b + 1, rows], k[b : b + 1, rows], v[b : b + 1, rows], **cut(b, rows))[0]
    keep = np.array([[1, 1, 1, 1, 1, 1, 1, 1], [0, 0, 1, 1, 1, 1, 1, 0]], bool)
    spoil = lambda x: np.where(keep.reshape(B, 8, *[1] * (x.ndim - 2)), x, np.nan)
    spoilt = {n: spoil(x) if n in mechanism.tokens else x for n, x in extra.items()}
    y = run(spoil(q), spoil(k), spoil(v), keep=keep, **spoilt)
    near(y[0], alone(0, slice(0, 8)))
    near(y[1, 2:7], alone(1, slice(2, 7)))
    assert not np.asarray(y)[~keep].any()
    segments = np.array([[0, 0, 0, 1, 1, 1, 1, 1], [3, 3, 3, 3, 3, 3, 7, 7]])
    y = run(q, k, v, segment_ids=segments, **extra)
    for b, at in ((0, 3), (1, 6)):
        near(y[b, :at], alone(b, slice(0, at)))
        near(y[b, at:], alone(b, slice(at, 8)))


@pytest.mark.parametrize("name", ["softmax", "linear"])
def test_a_segment_id_that_returns_begins_a_new_segment_with_and_without_a_mask(name, x64):
    q, k, v, extra = draw(MECHANISMS[name], 8)
    call = jax.jit(partial(attnlab.attention, mechanism=name, causal=True, **extra))
    ids = np.array([[0, 0, 7, 7, -1, 0, 0, 0], [2, 2, 2, 3, 2, 2, 2, 2]])
    keep = np.array([[1, 1, 1, 1, 1, 1, 1, 1], [1, 1, 1, 0, 1, 1, 1, 1]], bool)  # padding begins no segment
    mask = np.ones((8, 8), bool)
    y = call(q, k, v, segment_ids=ids, keep=keep)
    near(y[0, 5:], call(q[:1, 5:], k[:1, 5:], v[:1, 5:])[0])
    near(call(q, k, v, segment_ids=ids, keep=keep, mask=mask), y)
    near(call(q, k, v, segment_ids=ids, keep=keep, query_keep=keep), y)
    cache, steps = attnlab.init_cache(name, B, 8, q.shape[2], K, value_width=v.shape[3], key_heads=k.shape[2]), []
    for t in range(8):
        here = (x[:, t : t + 1] for x in (q, k, v))
        step, cache = attnlab.decode_step(cache, *here, segment_ids=ids[:, t : t + 1], keep=keep[:, t : t + 1], **extra)
        steps.append(step)
    near(jnp.concatenate(steps, axis=1), y)


def test_masks_segments_and_padding_of_other_lengths_are_counted_by_rows(x64):
    mechanism = MECHANISMS["softmax"]
    q, k, v, _ = given = draw(mechanism, 4, 6)
    queries, keys = np.array([[0, 0, 1, 2], [1, 1, 0, 0]]), np.array([[0, 0, 1, 1, 2, 2], [1, 1, 1, 0, 0, 0]])
    asked = np.array([[1, 1, 1, 0], [1, 0, 1, 1]], bool)
    call = jax.jit(attnlab.attention, static_argnames="causal")
    y = call(q, k, v, segment_ids=(queries, keys), query_keep=asked)
    rows = np.arange(4, dtype=np.int32)
    rule = lambda b: Segments(queries[b], keys[b]) & QueryPadding(asked[b])
    near(y, loop(mechanism, given, lambda q, k, v, extra, b: mechanism.attend(q, k, v, rule(b), i=rows)))
    # Queries are the last tokens, so the padding of keys applies to them, too.
    keep = np.array([[1, 1, 1, 1, 1, 0], [0, 1, 1, 1, 0, 0]], bool)
    y = call(q, k, v, keep=keep, causal=True)
    assert (np.asarray(y).any(axis=(2, 3)) == keep[:, 2:]).all()
    rule = lambda b: KeyPadding(keep[b]) & Causal()
    wanted = loop(mechanism, given, lambda q, k, v, extra, b: mechanism.attend(q, k, v, rule(b)))
    near(y, wanted * keep[:, 2:, None, None])
    # More queries than keys.
    q, k, v, _ = draw(mechanism, 6, 4)
    mask = np.random.default_rng(0).random((B, 6, 4)) < 0.6
    mask[..., 0] = True
    q, k, v = map(jnp.asarray, (q, k, v[..., :K]))
    near(call(q, k, v, mask=mask), theirs(q, k, v, mask=jnp.asarray(mask)[:, None]), 1e-6)
    near(
        call(q, k, v, mask=Window(3, 2)),
        loop(mechanism, (q, k, v, {}), lambda q, k, v, extra, b: mechanism.attend(q, k, v, Window(3, 2))),
    )


def test_an_array_of_biases_counts_rows_where_positions_skip_padding(x64):
    mechanism = MECHANISMS["softmax"]
    q, k, v, _ = draw(mechanism)
    bias = np.random.default_rng(2).standard_normal((B, H, T, T))
    keep = np.array([[0, 0, 1, 1, 1, 1, 1], [1, 1, 0, 1, 1, 1, 1]], bool)
    mask = np.tril(np.ones((T, T), bool)) & keep[:, None, :] & keep[:, :, None]
    wanted = jax.jit(attnlab.attention)(q, k, v, mask=mask, bias=bias)
    near(jax.jit(partial(attnlab.attention, causal=True))(q, k, v, keep=keep, bias=bias), wanted)
    slope = lambda q, i, j: -0.3 * jnp.abs(i[:, None] - j[None, :]).astype(q.dtype)
    array = -0.3 * np.abs(np.arange(T)[:, None] - np.arange(T))
    near(attnlab.attention(q, k, v, bias=slope), attnlab.attention(q, k, v, bias=array))


def test_learned_arrays_may_be_of_query_heads(x64):
    q, k, v, _ = draw(MECHANISMS["softmax-sink"])
    sink = np.array([0.1, 2.0, -1.0, 0.5])
    y = attnlab.attention(q, k, v, "softmax-sink", sink=sink)
    for h in range(H):
        scores = np.exp(np.einsum("btk,bsk->bts", q[:, :, h], k[:, :, h // 2]) / 2)
        weights = scores / (np.exp(sink[h]) + scores.sum(axis=2, keepdims=True))
        near(y[:, :, h], weights @ v[:, :, h // 2])
    cache = attnlab.init_cache("softmax-sink", B, T, H, K, value_width=V, key_heads=G)
    steps, _ = attnlab.decode_step(cache, q, k, v, sink=sink)
    near(steps, attnlab.attention(q, k, v, "softmax-sink", causal=True, sink=sink))


@pytest.mark.parametrize("name", ["softmax", "gated-linear"])
def test_vmap_and_bfloat16(name):
    mechanism = MECHANISMS[name]
    q, k, v, extra = draw(mechanism, dtype=np.float32)
    run = jax.jit(partial(attnlab.attention, mechanism=name, causal=True))
    whole = run(q, k, v, **extra)
    tokens = {n: x for n, x in extra.items() if n in mechanism.tokens}
    fixed = {n: x for n, x in extra.items() if n not in mechanism.tokens}
    near(jax.vmap(lambda q, k, v, tokens: run(q, k, v, **tokens, **fixed))(q, k, v, tokens), whole, 1e-6)
    half = {n: jnp.asarray(x, jnp.bfloat16) for n, x in extra.items()}
    low = run(*(jnp.asarray(x, jnp.bfloat16) for x in (q, k, v)), **half)
    assert low.dtype == jnp.bfloat16
    near(low, whole, 0.1)
    cache = attnlab.init_cache(name, B, T, H, K, value_width=V, key_heads=G, dtype=jnp.bfloat16)
    low, _ = jax.jit(attnlab.decode_step)(cache, *(jnp.asarray(x, jnp.bfloat16) for x in (q, k, v)), **half)
    assert low.dtype == jnp.bfloat16
    near(low, whole, 0.1)


def test_a_cache_is_full_when_one_example_does_not_fit():
    q, k, v, _ = draw(MECHANISMS["softmax"], 3, dtype=np.float32)
    cache = attnlab.init_cache("softmax", B, 4, H, K, value_width=V, key_heads=G)
    first, second = np.array([[1, 1, 1], [0, 0, 1]], bool), np.array([[0, 0, 1], [1, 1, 1]], bool)
    y, cache = attnlab.decode_step(cache, q, k, v, keep=first)
    assert not np.asarray(y)[~first].any()
    _, cache = attnlab.decode_step(cache, q, k, v, keep=second)  # four of four tokens in both examples
    with pytest.raises(ValueError, match="room for 4 tokens, got 5: start it with length=5"):
        attnlab.decode_step(cache, q[:, :1], k[:, :1], v[:, :1], keep=np.array([[True], [False]]))


def test_the_functions_are_lent_lazily():
    names = {"attention", "init_cache", "decode_step"}
    assert names <= set(dir(attnlab))
    code = "import attnlab, sys; assert 'jax' not in sys.modules; print(attnlab.attention.__module__)"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "attnlab.functional.attention"
