"""The contract suite: what every mechanism in `MECHANISMS` must keep."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jax.test_util import check_grads

from attnlab.mechanisms import MECHANISMS, Watched
from attnlab.ops.mask import Causal, Edges, Full, Kept, Keys, Segments, Window
from tests.mechanisms.contract import K, V, attend, causal, cut, extend, inputs, weights

pytestmark = pytest.mark.usefixtures("x64")
every = pytest.mark.parametrize("name", MECHANISMS)
stateful = pytest.mark.parametrize("name", [n for n, m in MECHANISMS.items() if m.stateful])
EXACT = 1e-10  # float64: forms are the same sums in another order


def near(a, b, tolerance=EXACT):
    np.testing.assert_allclose(np.asarray(a), np.asarray(b), rtol=0, atol=tolerance)


def attends(mechanism, q, k, v, mask, **extra):
    """`attend`, or a skip where the mechanism says that it cannot honour the mask."""
    try:
        return attend(mechanism, q, k, v, mask, **extra)
    except NotImplementedError as refusal:
        pytest.skip(str(refusal))


@stateful
@pytest.mark.parametrize("T", [1, 7, 16])
@pytest.mark.parametrize("block", [None, 1, 2, 5, 64])
def test_every_block_gives_the_same_as_attending_causally(name, T, block):
    mechanism = MECHANISMS[name]
    q, k, v, extra = inputs(mechanism, T)
    near(causal(mechanism, q, k, v, block=block, **extra), attends(mechanism, q, k, v, Causal(), **extra))


@stateful
def test_blocks_agree_over_more_tokens_than_one_block_of_the_fastest_form(name):
    mechanism = MECHANISMS[name]
    q, k, v, extra = inputs(mechanism, 131)
    near(causal(mechanism, q, k, v, **extra), causal(mechanism, q, k, v, block=1, **extra))


@stateful
@pytest.mark.parametrize("cuts", [(4, 8), (1, 2), (7,)], ids=str)
def test_split_and_go_on_equals_the_whole(name, cuts):
    mechanism = MECHANISMS[name]
    q, k, v, extra = inputs(mechanism, 11)
    state, parts = mechanism.start(11, K, V), []
    for a, b in zip([0, *cuts], [*cuts, 11], strict=True):
        y, state = extend(mechanism, state, q[a:b], k[a:b], v[a:b], **cut(mechanism, extra, slice(a, b)))
        parts.append(y)
    near(jnp.concatenate(parts), causal(mechanism, q, k, v, **extra))


@stateful
@pytest.mark.parametrize("block", [None, 3])
def test_no_token_has_any_gradient_to_an_earlier_output(name, block):
    mechanism = MECHANISMS[name]
    q, k, v, extra = inputs(mechanism, 7)

    def outputs(k, v, extra):
        return causal(mechanism, q, k, v, block=block, **extra)

    for jacobian in jax.tree.leaves(jax.jacrev(outputs, argnums=(0, 1))(k, v, extra)):
        for t in range(7):
            assert not np.any(jacobian[t, :, t + 1 :]), "a later token reached an earlier output"
        assert np.any(jacobian[6, :, 0]), "the first token should reach the last output"


@every
def test_gradients_agree_with_finite_differences(name):
    mechanism = MECHANISMS[name]
    q, k, v, extra = inputs(mechanism, 5)
    target = jax.random.normal(jax.random.key(9), (5, V))
    masks = [Full(), Keys(3), Causal(), Window(2, 3)]
    tested = 0
    for mask in masks:

        def value(q, k, v, mask=mask):
            return jnp.sum(attend(mechanism, q, k, v, mask, **extra) * target)

        try:
            value(q, k, v)
        except NotImplementedError:
            continue
        check_grads(value, (q, k, v), order=1, modes=["rev"], atol=1e-6, rtol=1e-6)
        tested += 1
    if mechanism.stateful:
        run = lambda q, k, v: jnp.sum(causal(mechanism, q, k, v, block=2, **extra) * target)
        check_grads(run, (q, k, v), order=1, modes=["rev"], atol=1e-6, rtol=1e-6)
        tested += 1
    assert tested


@every
@pytest.mark.parametrize("T", [3, 7, 9])
def test_jit_equals_eager_and_vmap_equals_a_loop(name, T):
    mechanism = MECHANISMS[name]
    examples = [inputs(mechanism, T, 7, seed) for seed in range(3)]
    q, k, v, extra = jax.tree.map(lambda *x: jnp.stack(x), *examples)

    def run(q, k, v, extra):
        return attend(mechanism, q, k, v, Keys(5), **extra)

    loop = jnp.stack([run(*example) for example in examples])
    assert loop.shape == (3, T, V)
    near(jax.jit(jax.vmap(run))(q, k, v, extra), loop)
    with jax.disable_jit():
        near(run(*examples[0]), loop[0])


@every
@settings(max_examples=15, deadline=None)
@given(seen=st.lists(st.booleans(), min_size=8, max_size=8), bad=st.sampled_from([np.nan, np.inf, -np.inf]))
def test_what_no_query_may_see_reaches_neither_the_result_nor_a_gradient(name, seen, bad):
    with jax.enable_x64(True):
        mechanism = MECHANISMS[name]
        q, k, v, extra = inputs(mechanism, 5, 8)
        seen = jnp.array(seen)
        spoil = lambda x: jnp.where(seen.reshape(-1, *[1] * (x.ndim - 1)), x, bad)

        def run(q, k, v, extra):
            return attend(mechanism, q, k, v, Kept(seen), **extra)

        clean, back = jax.vjp(run, q, k, v, extra)
        dirty_extra = {n: spoil(x) if n in mechanism.tokens else x for n, x in extra.items()}
        dirty, dirty_back = jax.vjp(run, q, spoil(k), spoil(v), dirty_extra)
        near(dirty, clean)
        for a, b in zip(jax.tree.leaves(back(clean)), jax.tree.leaves(dirty_back(clean)), strict=True):
            assert np.isfinite(b).all()
            near(a, b)
        if bool(seen.any()):
            few = attend(
                mechanism,
                q,
                k[seen],
                v[seen],
                Full(),
                i=jnp.arange(3, 8),
                j=jnp.where(seen)[0],
                **cut(mechanism, extra, seen),
            )
            near(clean, few)
        else:
            assert not np.any(clean)


@every
def test_a_query_without_any_key_answers_zero_with_zero_gradient_even_if_it_is_nan(name):
    mechanism = MECHANISMS[name]
    q, k, v, extra = inputs(mechanism, 4)
    ids = jnp.array([0, 0, 5, 0], jnp.int32)

    def run(q, k, v):
        return attend(mechanism, q, k, v, Segments(ids, jnp.zeros(4, jnp.int32)), **extra)

    try:
        y, back = jax.vjp(run, q.at[2].set(jnp.nan), k, v)
    except NotImplementedError as refusal:
        pytest.skip(str(refusal))
    assert not np.any(y[2])
    dq, dk, dv = back(jnp.ones_like(y))
    assert not np.any(dq[2])
    assert all(np.isfinite(x).all() for x in (y, dq, dk, dv))


@stateful
@pytest.mark.parametrize("block", [None, 1, 4])
@pytest.mark.parametrize("keep", ["0011111", "1111100", "1010110", "0000000"])
def test_padding_changes_neither_values_nor_gradients(name, block, keep):
    mechanism = MECHANISMS[name]
    q, k, v, extra = inputs(mechanism, 7)
    kept = jnp.array([c == "1" for c in keep])
    target = jax.random.normal(jax.random.key(3), (7, V))
    spoil = lambda x: jnp.where(kept.reshape(-1, *[1] * (x.ndim - 1)), x, jnp.nan)

    def padded(q, k, v):
        given = {n: spoil(x) if n in mechanism.tokens else x for n, x in extra.items()}
        return causal(mechanism, spoil(q), spoil(k), spoil(v), block=block, keep=kept, **given)

    def alone(q, k, v):
        rows = np.where(kept)[0]
        y = causal(mechanism, q[rows], k[rows], v[rows], **cut(mechanism, extra, rows))
        return jnp.zeros((7, V)).at[rows].set(y)

    if not kept.any():
        assert not np.any(padded(q, k, v))
        return
    near(padded(q, k, v), alone(q, k, v))
    one, other = (jax.grad(lambda *x, f=f: jnp.sum(f(*x) * target), (0, 1, 2))(q, k, v) for f in (padded, alone))
    for a, b in zip(one, other, strict=True):
        near(jnp.where(kept[:, None], a, 0), b)


@stateful
@pytest.mark.parametrize("block", [None, 1, 3])
def test_packed_sequences_do_not_meet(name, block):
    mechanism = MECHANISMS[name]
    q, k, v, extra = inputs(mechanism, 9)
    segment = jnp.array([4, 4, 4, 1, 1, 7, 7, 7, 7])
    packed = causal(mechanism, q, k, v, block=block, segment=segment, **extra)
    apart = [
        causal(mechanism, q[rows], k[rows], v[rows], **cut(mechanism, extra, rows))
        for rows in (slice(0, 3), slice(3, 5), slice(5, 9))
    ]
    near(packed, jnp.concatenate(apart))


@stateful
def test_packing_with_padding_between_and_across_blocks(name):
    mechanism = MECHANISMS[name]
    q, k, v, extra = inputs(mechanism, 10)
    keep = jnp.array([0, 1, 1, 0, 0, 1, 1, 1, 0, 1], bool)
    segment = jnp.array([9, 2, 2, 9, 9, 5, 5, 5, 0, 5])
    first, second = np.array([1, 2]), np.array([5, 6, 7, 9])
    for block in (None, 1, 2, 4):
        y = causal(mechanism, q, k, v, block=block, keep=keep, segment=segment, **extra)
        for rows in (first, second):
            near(y[rows], causal(mechanism, q[rows], k[rows], v[rows], **cut(mechanism, extra, rows)))
        assert not np.any(y[~keep])


@every
def test_the_map_reproduces_the_output(name):
    mechanism = MECHANISMS[name]
    q, k, v, extra = inputs(mechanism, 6)
    for mask in (Full(), Keys(4), Causal()):
        try:
            map_ = weights(mechanism, q, k, mask, **extra)
            near(map_ @ v, attend(mechanism, q, k, v, mask, **extra))
        except NotImplementedError:
            continue
        assert not np.any(np.where(np.asarray(mask(jnp.arange(6), jnp.arange(6))), 0, map_))


@stateful
def test_watching_changes_nothing_and_its_state_holds_the_map(name):
    mechanism = MECHANISMS[name]
    q, k, v, extra = inputs(mechanism, 6)
    watched = Watched(mechanism)
    state = watched.start(8, K, V)
    keep = jnp.array([1, 0, 1, 1, 1, 1], bool)
    parts = []
    for rows in (slice(0, 3), slice(3, 6)):
        y, state = extend(watched, state, q[rows], k[rows], v[rows], keep=keep[rows], **cut(mechanism, extra, rows))
        parts.append(y)
    rows = np.where(keep)[0]
    near(jnp.concatenate(parts), causal(mechanism, q, k, v, keep=keep, **extra))
    near(state.map[:5, :5], weights(mechanism, q[rows], k[rows], Causal(), **cut(mechanism, extra, rows)))
    assert not np.any(state.map[5:])
    assert not np.any(state.map[:, 5:])


@stateful
def test_a_full_cache_raises_and_a_traced_one_touches_no_slot(name):
    mechanism = MECHANISMS[name]
    q, k, v, extra = inputs(mechanism, 4)
    start = mechanism.start(3, K, V)
    y, full = mechanism.extend(start, q[:3], k[:3], v[:3], **cut(mechanism, extra, slice(0, 3)))
    last = cut(mechanism, extra, slice(3, 4))
    sizes = [[x.shape for x in jax.tree.leaves(mechanism.start(length, K, V))] for length in (3, 5)]
    if sizes[0] == sizes[1]:
        y, _ = mechanism.extend(full, q[3:], k[3:], v[3:], **last)
        near(y, causal(mechanism, q, k, v, **extra)[3:])
        return
    with pytest.raises(ValueError, match="room for 3 tokens"):
        mechanism.extend(full, q[3:], k[3:], v[3:], **last)
    y, after = jax.jit(mechanism.extend)(full, q[3:], k[3:], v[3:], **last)
    assert np.isnan(y).all()
    for name_ in ("k", "v"):
        near(getattr(after.memory, name_), getattr(full.memory, name_), 0)


@every
@pytest.mark.parametrize(("dtype", "limit"), [("float32", 5e-6), ("bfloat16", 1.5e-2), ("float16", 2e-3)])
@pytest.mark.parametrize("mask", [Full(), Causal()], ids=["full", "causal"])
def test_error_against_float64_stays_within_its_limit(name, dtype, limit, mask):
    mechanism = MECHANISMS[name]
    rounded = inputs(mechanism, 512, dtype=dtype)
    q, k, v, extra = jax.tree.map(lambda x: x.astype(jnp.float64), rounded)
    run = lambda q, k, v, extra: (
        causal(mechanism, q, k, v, **extra)
        if mechanism.stateful and isinstance(mask, Causal)
        else attends(mechanism, q, k, v, mask, **extra)
    )
    exact = run(q, k, v, extra)
    found = run(*rounded)
    assert found.dtype == dtype
    error = jnp.max(jnp.abs(found.astype(jnp.float64) - exact)) / jnp.max(jnp.abs(exact))
    assert float(error) <= limit


@every
def test_extreme_scores_stay_finite(name):
    mechanism = MECHANISMS[name]
    q, k, v, extra = inputs(mechanism, 6, dtype=jnp.float32)
    for scale in (1e-30, 1e3, 1e4):
        y, back = jax.vjp(lambda q, k, v: attend(mechanism, q, k, v, Full(), **extra), q * scale, k * scale, v)
        assert np.isfinite(y).all()
        assert all(np.isfinite(g).all() for g in back(jnp.ones_like(y)))


@every
@pytest.mark.parametrize("shift", [-10.0, -23.0, -30.0, -40.0, -60.0])
def test_faint_features_keep_finite_gradients(name, shift):
    mechanism = MECHANISMS[name]
    q, k, v, extra = inputs(mechanism, 6, dtype=jnp.float32)
    for run in [attend] + [causal] * mechanism.stateful:
        y, back = jax.vjp(lambda q, k, v, run=run: run(mechanism, q, k, v, **extra), q + shift, k + shift, v)
        assert np.isfinite(y).all()
        assert all(np.isfinite(g).all() for g in back(jnp.ones_like(y)))


@every
def test_nothing_to_attend_to_and_nothing_that_attends(name):
    mechanism = MECHANISMS[name]
    q, k, v, extra = inputs(mechanism, 3)
    none = cut(mechanism, extra, slice(0, 0))
    assert not np.any(mechanism.attend(q, k[:0], v[:0], **none))
    assert mechanism.attend(q[:0], k, v, Keys(2), **extra).shape == (0, V)
    if mechanism.stateful:
        for block in (None, 2):
            assert causal(mechanism, q[:0], k[:0], v[:0], block=block, **none).shape == (0, V)


@every
def test_an_array_too_short_for_the_positions_is_refused(name):
    mechanism = MECHANISMS[name]
    q, k, v, extra = inputs(mechanism, 6)
    for mask in (Edges(jnp.eye(3, dtype=bool)), Segments(jnp.arange(3), jnp.arange(6)), Kept(jnp.ones(5, bool))):
        with pytest.raises(ValueError, match="for 6 positions"):
            mechanism.attend(q, k, v, mask, **extra)


@every
def test_the_map_under_given_positions_is_that_of_attending(name):
    mechanism = MECHANISMS[name]
    q, k, v, extra = inputs(mechanism, 4)
    i = jnp.arange(4, dtype=jnp.int32) + 2
    near(weights(mechanism, q, k, Causal(), i=i, **extra) @ v, attends(mechanism, q, k, v, Causal(), i=i, **extra))


@stateful
def test_the_state_has_the_declared_size(name):
    mechanism = MECHANISMS[name]
    memory = mechanism.start(32, K, V, jnp.float32).memory
    numbers = [leaf for leaf in jax.tree.leaves(memory) if jnp.issubdtype(leaf.dtype, jnp.floating)]
    assert sum(leaf.size * leaf.dtype.itemsize for leaf in numbers) == mechanism.cost(32, 32, K, V).state_bytes


@every
def test_declared_flops_are_within_a_factor_of_two_of_the_compilers_count(name):
    mechanism = MECHANISMS[name]
    T, S, width = 48, 64, 16
    shapes = [jax.ShapeDtypeStruct(s, jnp.float32) for s in ((T, width), (S, width), (S, width))]
    _, _, _, extra = inputs(mechanism, T, S)
    if mechanism.tokens or mechanism.learned:
        pytest.skip("counted with its own widths")
    counted = attend.lower(mechanism, *shapes, **extra).compile().cost_analysis()["flops"]
    declared = mechanism.cost(T, S, width, width).flops
    assert 0.5 <= declared / counted <= 2


@every
def test_unknown_and_missing_extras_are_named(name):
    mechanism = MECHANISMS[name]
    q, k, v, extra = inputs(mechanism, 3)
    with pytest.raises(TypeError, match="takes no \\['nonsense'\\]"):
        attend(mechanism, q, k, v, nonsense=q, **extra)
    for missing in [n for n in extra if n not in mechanism.heads(1)]:
        with pytest.raises(TypeError, match=f"needs \\['{missing}'\\]"):
            attend(mechanism, q, k, v, **{n: x for n, x in extra.items() if n != missing})


@every
def test_a_mask_that_looks_rows_up_needs_positions_where_lengths_differ(name):
    mechanism = MECHANISMS[name]
    q, k, v, extra = inputs(mechanism, 2, 4)
    mask = Segments(jnp.array([0, 0, 1, 1]), jnp.array([0, 0, 1, 1]))
    with pytest.raises(ValueError, match="give i"):
        attend(mechanism, q, k, v, mask, **extra)


@pytest.mark.parametrize("name", ["softmax", "linear"])
def test_permuting_keys_with_their_mask_and_positions_changes_nothing(name):
    mechanism = MECHANISMS[name]
    q, k, v, extra = inputs(mechanism, 5, 9)
    order = jax.random.permutation(jax.random.key(2), 9)
    i, j = jnp.arange(4, 9), jnp.arange(9)
    for mask in (Full(), Causal(), Window(3, 2)):
        plain = attend(mechanism, q, k, v, mask, i=i, j=j, **extra)
        near(attend(mechanism, q, k[order], v[order], mask, i=i, j=j[order], **extra), plain)


@pytest.mark.parametrize("name", ["softmax", "linear"])
def test_rows_sum_to_one_and_stay_in_the_hull_of_the_values(name):
    mechanism = MECHANISMS[name]
    q, k, v, extra = inputs(mechanism, 7)
    map_ = weights(mechanism, q, k, Causal(), **extra)
    near(map_.sum(axis=1), jnp.ones(7))
    assert (map_ >= 0).all()
    y = attend(mechanism, q, k, v, **extra)
    assert (y <= v.max(axis=0, keepdims=True) + 1e-12).all()
    assert (y >= v.min(axis=0, keepdims=True) - 1e-12).all()


@every
def test_numpys_arrays_are_taken(name):
    mechanism = MECHANISMS[name]
    given = inputs(mechanism, 5)
    q, k, v, extra = jax.tree.map(np.asarray, given)
    near(mechanism.attend(q, k, v, Keys(3), **extra), attend(mechanism, *given[:3], Keys(3), **given[3]))
    if mechanism.stateful:
        keep, segment = np.array([1, 1, 0, 1, 1], bool), np.array([0, 0, 0, 3, 3])
        plain = causal(mechanism, *given[:3], keep=jnp.asarray(keep), segment=jnp.asarray(segment), **given[3])
        near(mechanism.whole(q, k, v, keep=keep, segment=segment, **extra), plain)
        y, _ = mechanism.extend(mechanism.start(5, K, V), q, k, v, keep=keep, segment=segment, **extra)
        near(y, plain)
