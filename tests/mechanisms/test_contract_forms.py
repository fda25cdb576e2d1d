"""The contract: all forms of a mechanism compute the same function."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attnlab.mechanisms.maps import value_width
from attnlab.mechanisms.recurrent import Recurrent
from attnlab.ops.mask import Causal, Edges, Full, KeyPadding, Keys, Segments, Window
from tests.mechanisms.contract import (
    SMALL,
    K,
    V,
    attend,
    causal,
    cut,
    every,
    extend,
    group,
    honoured,
    inputs,
    near,
    refusal,
    stateful,
    weights,
)

pytestmark = pytest.mark.usefixtures("x64")
# Mechanisms whose weights depend on q_t, k_j and their positions alone, and mechanisms whose weights sum to one.
PAIRS = ["softmax", "softmax-blockwise", "sigmoid", "linear"]
SHARES = ["softmax", "softmax-blockwise", "window", "strided", "longformer", "bigbird", "linear", "performer", "taylor"]


@stateful
@pytest.mark.parametrize(("T", "blocks"), [(1, [1]), (13, [1, 5, 64])], ids=["1", "13"])
def test_every_block_gives_the_same_as_attending_causally(name, T, blocks):
    mechanism = SMALL[name]
    q, k, v, extra = inputs(mechanism, T)
    whole = causal(mechanism, q, k, v, **extra)
    for block in blocks:
        near(causal(mechanism, q, k, v, block=block, **extra), whole)
    honoured(mechanism, Causal())
    near(attend(mechanism, q, k, v, Causal(), **extra), whole)


@stateful
def test_blocks_agree_over_more_tokens_than_one_block_of_the_fastest_form(name):
    mechanism = SMALL[name]
    q, k, v, extra = inputs(mechanism, 131)
    whole = causal(mechanism, q, k, v, **extra)
    near(causal(mechanism, q, k, v, block=48, **extra), whole)


@stateful
def test_continuing_from_a_state_equals_one_pass(name):
    mechanism = SMALL[name]
    q, k, v, extra = inputs(mechanism, 13)
    whole = causal(mechanism, q, k, v, **extra)
    for cuts in [(0, 4, 8, 9, 13), (0, 1, 5, 9, 13)]:
        state, parts = mechanism.start(13, K, V), []
        for a, b in itertools.pairwise(cuts):
            y, state = extend(mechanism, state, q[a:b], k[a:b], v[a:b], **cut(mechanism, extra, slice(a, b)))
            parts.append(y)
        near(np.concatenate(parts), whole)


@every
def test_jit_equals_eager_and_vmap_equals_a_loop(name):
    mechanism = SMALL[name]
    calls = (Keys(5), 3), (Causal(), 7), (Full(), 7)
    mask, T = next(call for call in calls if refusal(mechanism, *call, 7) is None)
    examples = [inputs(mechanism, T, 7, seed) for seed in range(3)]
    loop = np.stack([attend(mechanism, q, k, v, mask, **extra) for q, k, v, extra in examples])
    assert loop.shape == (3, T, V)
    q, k, v, extra = jax.tree.map(lambda *x: np.stack(x), *examples)
    lifted = jax.jit(jax.vmap(lambda q, k, v, extra: mechanism.attend(q, k, v, mask, **extra)))
    near(lifted(q, k, v, extra), loop)
    q, k, v, extra = examples[0]
    near(mechanism.attend(q, k, v, mask, **extra), loop[0])


@every
def test_the_map_reproduces_the_output(name):
    mechanism = SMALL[name]
    q, k, v, extra = inputs(mechanism, 6)
    tried = 0
    adjacency = np.random.default_rng(3).random((6, 6)) < 0.5
    for mask in (KeyPadding(np.array([1, 0, 1, 1, 0, 1], bool)), Causal(), ~Edges(adjacency)):
        if refusal(mechanism, mask, 6, 6) is None:
            map_ = weights(mechanism, q, k, mask, **extra)
            if value_width(mechanism, extra) is None:
                near(map_ @ v, attend(mechanism, q, k, v, mask, **extra))
            else:  # one map per channel: their mean is returned, and extra inputs may contain values
                same = np.repeat(v[:, :1], V, axis=1)
                change = attend(mechanism, q, k, same, mask, **extra) - attend(mechanism, q, k, 0 * v, mask, **extra)
                near(map_ @ v[:, 0], change.mean(axis=1))
            assert not np.any(np.where(np.asarray(mask(np.arange(6), np.arange(6))), 0, map_))
            tried += 1
    assert tried


@stateful
def test_a_full_cache_raises_and_a_traced_one_touches_no_slot(name):
    mechanism = SMALL[name]
    q, k, v, extra = inputs(mechanism, 4)
    sizes = [[x.shape for x in jax.tree.leaves(mechanism.start(length, K, V))] for length in (3, 5)]
    first, last = cut(mechanism, extra, slice(0, 3)), cut(mechanism, extra, slice(3, 4))
    _, full = extend(mechanism, mechanism.start(3, K, V), q[:3], k[:3], v[:3], **first)
    y, after = extend(mechanism, full, q[3:], k[3:], v[3:], **last)
    if sizes[0] == sizes[1]:
        near(y, causal(mechanism, q, k, v, **extra)[3:])
        return
    assert np.isnan(y).all()
    for slots in ("k", "v"):
        near(getattr(after.memory, slots), getattr(full.memory, slots), 0)
    with pytest.raises(ValueError, match="room for 3 tokens"):
        mechanism.extend(full, q[3:], k[3:], v[3:], **last)


@every
def test_no_keys_and_no_queries(name):
    mechanism = SMALL[name]
    q, k, v, extra = inputs(mechanism, 3)
    none = cut(mechanism, extra, slice(0, 0))
    if refusal(mechanism, Full(), 3, 0) is None:
        some = slice(None)
        assert not np.any(attend(mechanism, q, k[:0], v[:0], **cut(mechanism, extra, slice(0, 0), some)))
        assert attend(mechanism, q[:0], k, v, **cut(mechanism, extra, some, slice(0, 0))).shape == (0, V)
    if mechanism.traits.decodes:
        for block in (None, 2):
            assert causal(mechanism, q[:0], k[:0], v[:0], block=block, **none).shape == (0, V)


@every
def test_given_positions_are_used(name):
    mechanism = SMALL[name]
    q, k, v, extra = inputs(mechanism, 4)
    honoured(mechanism, Causal() & Window(9, 1))
    i = np.arange(4, dtype=np.int32) + 2
    y = attend(mechanism, q, k, v, Causal(), i=i, **extra)
    near(weights(mechanism, q, k, Causal(), i=i, **extra) @ v, y)
    # Positions inferred from the shapes, with aligned ends, equal positions that are passed.
    extra = cut(mechanism, extra, slice(None), slice(0, 2))
    aligned = attend(mechanism, q[:2], k, v, Causal(), **extra)
    near(aligned, attend(mechanism, q[:2], k, v, Causal(), i=np.array([2, 3]), j=np.arange(4), **extra))


@stateful
def test_the_state_has_the_declared_size_and_at_least_float32_sums(name):
    mechanism = SMALL[name]
    for dtype in (jnp.float32, jnp.bfloat16) if isinstance(mechanism, Recurrent) else (jnp.float32,):
        memory = mechanism.start(32, K, V, dtype).memory
        numbers = [leaf for leaf in jax.tree.leaves(memory) if jnp.issubdtype(leaf.dtype, jnp.floating)]
        assert sum(leaf.size * leaf.dtype.itemsize for leaf in numbers) == mechanism.cost(32, 32, K, V).state_bytes


@every
def test_unknown_and_missing_extras_are_named(name):
    mechanism = SMALL[name]
    q, k, v, extra = inputs(mechanism, 3)
    with pytest.raises(TypeError, match="got unexpected inputs nonsense;"):
        mechanism.attend(q, k, v, nonsense=q, **extra)
    for missing in extra:
        # Constants per head have no default. Under a `jax.vmap` over heads, all heads would get the constants of one
        # head.
        said = f"pass {missing}=mechanism.heads" if missing in mechanism.heads(2) else ""
        with pytest.raises(TypeError, match=rf"missing inputs {missing}.*{said}"):
            mechanism.attend(q, k, v, **{n: x for n, x in extra.items() if n != missing})


@every
def test_unsupported_masks_and_positions_are_refused_naming_both(name):
    mechanism = SMALL[name]
    q, k, v, extra = inputs(mechanism, 4)
    for mask in (Full(), Causal(), Edges(jnp.eye(4, dtype=bool))):
        if (why := refusal(mechanism, mask)) is not None:
            assert type(mechanism).__name__ in why
            assert type(mask).__name__ in why
    if not mechanism.traits.bias:
        with pytest.raises(NotImplementedError, match=f"{type(mechanism).__name__}.*does not support a bias"):
            mechanism.attend(q, k, v, Causal(), bias=lambda q, i, j: 0, **extra)


@every
def test_a_mask_that_indexes_arrays_needs_rows_for_all_tokens(name):
    mechanism = SMALL[name]
    q, k, v, extra = inputs(mechanism, 2, 4)
    four = jnp.array([0, 0, 1, 1])
    with pytest.raises(
        ValueError, match="needs the positions i of the queries, because there are 2 queries and 4 keys"
    ):
        mechanism.attend(q, k, v, Segments(four, four), **extra)
    q, k, v, extra = inputs(mechanism, 6)
    for mask in (Edges(jnp.eye(3, dtype=bool)), Segments(jnp.arange(3), jnp.arange(6)), KeyPadding(jnp.ones(5, bool))):
        with pytest.raises(ValueError, match="for 6 positions"):
            mechanism.attend(q, k, v, mask, **extra)


@group(PAIRS)
def test_permuting_keys_with_their_mask_and_positions_changes_nothing(name):
    mechanism = SMALL[name]
    q, k, v, extra = inputs(mechanism, 5, 9)
    order = np.random.default_rng(2).permutation(9)
    i, j = np.arange(4, 9), np.arange(9)
    for mask in (Full(), Causal(), Window(3, 2)):
        plain = attend(mechanism, q, k, v, mask, i=i, j=j, **extra)
        near(attend(mechanism, q, k[order], v[order], mask, i=i, j=j[order], **extra), plain)


@group(SHARES)
def test_weights_sum_to_one_and_outputs_stay_in_the_convex_hull_of_values(name):
    mechanism = SMALL[name]
    q, k, v, extra = inputs(mechanism, 7)
    map_ = weights(mechanism, q, k, Causal(), **extra)
    near(map_.sum(axis=1), np.ones(7))
    assert (map_ >= 0).all()
    y = causal(mechanism, q, k, v, **extra)
    assert (y <= v.max(axis=0, keepdims=True) + 1e-12).all()
    assert (y >= v.min(axis=0, keepdims=True) - 1e-12).all()


@every
def test_concrete_arrays_are_accepted_while_tracing(name):
    mechanism = SMALL[name]
    q, k, v, extra = inputs(mechanism, 5)
    if mechanism.traits.decodes:
        keep, segment = np.array([1, 1, 0, 1, 1], bool), np.array([0, 0, 0, 3, 3])
        y = jax.eval_shape(lambda: mechanism.causal(q, k, v, keep=keep, segment=segment, **extra))
        assert y.shape == v.shape
    honoured(mechanism, Keys(3))
    assert jax.eval_shape(lambda: mechanism.attend(q, k, v, Keys(3), **extra)).shape == v.shape
