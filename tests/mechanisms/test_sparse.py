"""Checks window, strided, longformer and bigbird: softmax over a pattern, with a cost that grows with the pattern."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attnlab.mechanisms.bigbird import BigBird
from attnlab.mechanisms.longformer import Longformer
from attnlab.mechanisms.softmax import Softmax
from attnlab.mechanisms.strided import Strided
from attnlab.mechanisms.window import Local, LocalP
from attnlab.ops import blockwise
from attnlab.ops.blockwise import PositionedMask
from attnlab.ops.blockwise.schedule import PanelSchedule, plan_blocks
from attnlab.ops.mask import Causal, Full, KeyPadding, Keys, RandomBlocks, Window
from attnlab.ops.score import SCORES
from tests.mechanisms.contract import attend, causal, inputs, near, weights

pytestmark = pytest.mark.usefixtures("x64")
picked = RandomBlocks(1, 2, 3)
# Which keys j a query t may see, by the equations.
PATTERNS = {
    "window": (Local(3, 2), lambda t, j: -2 < t - j < 3),
    "strided": (Strided(4), lambda t, j: abs(t - j) < 4 or (t - j) % 4 == 0),
    "longformer": (Longformer(2, 2, 1), lambda t, j: abs(t - j) < 2 or t < 1 or j < 1),
    "bigbird": (
        BigBird(2, 2, 1, 1, 2, 3),
        lambda t, j: abs(t - j) < 2 or t < 1 or j < 1 or bool(picked(np.array([t]), np.array([j]))[0, 0]),
    ),
}
patterns = pytest.mark.parametrize("name", PATTERNS)


def test_bigbird_has_a_window_of_tokens_and_one_global_token_at_the_start():
    """Draws the pattern by hand: the window does not consist of blocks, and the last token is not global."""
    seen = """
        ########
        ###.....
        ####....
        #.###...
        #..###..
        #...###.
        #....###
        #.....##"""
    q, k, v, _ = inputs(BigBird(2, 2, 1, 0), 8)
    found = attend(BigBird(2, 2, 1, 0, block=4), q * 0, k, v)
    allowed = np.array([[mark == "#" for mark in row] for row in seen.split()])
    near(found, allowed @ np.asarray(v) / allowed.sum(axis=1, keepdims=True))


@patterns
def test_it_equals_softmax_over_its_pattern(name):
    mechanism, sees = replace(PATTERNS[name][0], block=4), PATTERNS[name][1]
    T = 13
    q, k, v, _ = inputs(mechanism, T)
    allowed = np.array([[sees(t, j) for j in range(T)] for t in range(T)])
    for mask, also in ((Full(), 1), (Causal(), np.tri(T))):
        scores = np.where(allowed * also, np.asarray(q @ k.T) / 2, -np.inf)
        shares = np.exp(scores - scores.max(axis=1, keepdims=True))
        near(attend(mechanism, q, k, v, mask), shares / shares.sum(axis=1, keepdims=True) @ np.asarray(v))


@patterns
def test_the_efficient_form_equals_the_definition_for_other_lengths(name):
    mechanism, _ = PATTERNS[name]
    q, k, v, _ = inputs(mechanism, 5, 14)
    target = jnp.ones((5, v.shape[1]))

    def total(mechanism):
        return jax.value_and_grad(lambda *x: jnp.sum(mechanism.attend(*x, Causal() & Keys(11)) * target), (0, 1, 2))

    near(jax.jit(total(replace(mechanism, block=4)))(q, k, v), jax.jit(total(replace(mechanism, block=None)))(q, k, v))


@patterns
def test_packed_and_padded_tokens_keep_their_own_pattern(name):
    mechanism, _ = PATTERNS[name]
    q, k, v, _ = inputs(mechanism, 12)
    keep, segment = jnp.arange(12) % 5 > 0, jnp.arange(12) // 7
    packed = causal(replace(mechanism, block=4), q, k, v, keep=keep, segment=segment)
    for run in (0, 1):
        rows = np.where(keep & (segment == run))[0]
        near(packed[rows], causal(replace(mechanism, block=None), q[rows], k[rows], v[rows]))


@patterns
def test_invalid_sizes_are_refused(name):
    kind = type(PATTERNS[name][0])
    with pytest.raises(ValueError, match="=0"):
        kind(0)


def visited(mechanism, T, block):
    """Returns the number of pairs of blocks that are visited under a causal mask."""
    place = np.arange(T, dtype=np.int32)
    schedule = plan_blocks(
        [PositionedMask(Causal(), place, place), PositionedMask(mechanism.pattern, place, place)], T, T, block, block
    )
    if isinstance(schedule, PanelSchedule):
        return sum(width // block for n in schedule.kind_of_block for width, _ in schedule.kinds[n])
    return int(schedule.unmasked.counts.sum() + schedule.masked.counts.sum())


@pytest.mark.parametrize("mechanism", [Local(), Longformer(), BigBird()], ids=["window", "longformer", "bigbird"])
def test_visited_blocks_grow_linearly_with_length(mechanism):
    few, many = (visited(mechanism, T, 64) for T in (2048, 4096))
    assert many < 2.2 * few
    assert many < 0.3 * visited(Softmax(), 4096, 64)


def test_strided_groups_its_columns():
    met = []
    original = blockwise.attend
    mechanism = Strided(16, block=16)

    def watched(q, k, v, scores, masks, **places):
        schedule = plan_blocks(masks, 256, 256, 16, 16)
        met.append(sum(w // 16 for n in schedule.kind_of_block for w, _ in schedule.kinds[n]))
        return original(q, k, v, scores, masks, **places)

    q, k, v, _ = inputs(mechanism, 256)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(blockwise, "attend", watched)
        jax.eval_shape(lambda *x: mechanism.attend(*x, Causal()), q, k, v)
    # Of sixteen blocks, two per window and one per column.
    assert met == [16, 31]


def test_random_blocks_are_symmetric_and_the_same_when_traced():
    mask = RandomBlocks(2, 4, 7)
    place = np.arange(60, dtype=np.int32)
    known = mask(place, place)
    assert isinstance(known, np.ndarray)
    np.testing.assert_array_equal(known, known.T)
    np.testing.assert_array_equal(known, jax.jit(mask)(jnp.asarray(place), jnp.asarray(place)))
    np.testing.assert_array_equal(known, np.kron(known[::4, ::4], np.ones((4, 4), bool)))
    np.testing.assert_array_equal(known[:32, :32], mask(place[:32], place[:32]))
    blocks = known[::4, ::4]
    # Every block except the first picks one or two earlier blocks.
    assert [row[:n].sum() >= 1 for n, row in enumerate(blocks)][1:] == [True] * 14
    assert not np.array_equal(known, RandomBlocks(2, 4, 8)(place, place))
    assert not mask(place - 60, place).any()
    for i0, i1, j0, j1 in ((0, 60, 0, 60), (8, 12, 0, 4), (4, 8, 0, 4), (9, 30, 3, 17), (40, 41, 12, 13)):
        here = known[i0:i1, j0:j1]
        assert mask.over(i0, i1, j0, j1) is (True if here.all() else None if here.any() else False)


def test_local_p_has_gaussian_weights_around_its_center():
    mechanism = LocalP(4)
    q, k, v, learned = inputs(mechanism, 5, 9)
    w_p, v_p = (np.asarray(learned[n]) for n in ("w_p", "v_p"))
    y = np.zeros((5, v.shape[1]))
    for t, one in enumerate(np.asarray(q)):
        centre = 9 / (1 + np.exp(-np.tanh(one @ w_p) @ v_p))
        near_by = [j for j in range(9) if abs(j - centre) <= 4]
        shares = np.exp([one @ np.asarray(k)[j] / 2 for j in near_by])
        for j, share in zip(near_by, shares / shares.sum(), strict=True):
            y[t] += share * np.exp(-((j - centre) ** 2) / (2 * 2**2)) * np.asarray(v)[j]
    near(attend(mechanism, q, k, v, Full(), **learned), y)
    general = LocalP(4, score=SCORES["general"])
    turned = jax.random.normal(jax.random.key(5), (q.shape[1], q.shape[1]), q.dtype)
    near(
        attend(general, q, k, v, Full(), **learned, w=turned),
        attend(mechanism, q, 2 * k @ turned.T, v, Full(), **learned),
    )
    # Padding is not counted.
    near(attend(mechanism, q, jnp.pad(k, ((0, 3), (0, 0))), jnp.pad(v, ((0, 3), (0, 0))), Keys(9), **learned), y)
    assert (weights(mechanism, q, k, Full(), **learned).sum(axis=1) < 1).all()


@pytest.mark.parametrize("score", ["scaled_dot", "general", "additive"])
def test_gathering_keys_around_a_center_equals_all_pairs(score):
    mechanism, T, S = LocalP(2, score=SCORES[score]), 70, 61
    q, k, v, learned = inputs(mechanism, T, S)
    # Includes centres at both ends.
    learned |= {"v_p": 9 * learned["v_p"]}
    keep = np.random.default_rng(0).random(S) < 0.8

    def both(mask, slope):
        bias = jax.tree_util.Partial(
            lambda slope, q, i, j: slope * jnp.abs(i[:, None] - j[None, :]).astype(float), slope
        )
        loss = lambda q, k, v, learned: jnp.sin(mechanism.attend(q, k, v, mask, bias=bias, **learned)).sum()
        return jax.jit(jax.value_and_grad(loss, (0, 1, 2, 3)))(q, k, v, learned)

    # The same mask, as a product of rows and columns and as pairs.
    fetched, pairs = (both(mask, jnp.float64(0.1)) for mask in (KeyPadding(keep), KeyPadding(keep) & Window(999, 999)))
    near(fetched, pairs, 1e-11)
    assert mechanism.cost(T, S, 4, 4).flops < mechanism.cost(T, S, 4, 4, block=T).flops / 4


def test_gathering_past_keys_equals_all_pairs():
    mechanism = LocalP(2)
    q, k, v, learned = inputs(mechanism, 61)
    pairs = attend(mechanism, q, k, v, Causal() & Window(999, 999), **learned)
    near(causal(mechanism, q, k, v, **learned), pairs)
    near(attend(mechanism, q, k, v, Causal(), **learned), pairs)
    near(attend(mechanism, q[-9:], k, v, Causal(), **learned), pairs[-9:])
    # Explicit positions move the window. They do not change which tokens are past.
    moved = np.arange(61, dtype=np.int32)[::-1] // 2
    known = jax.jit(lambda: mechanism.causal(q, k, v, i=moved, **learned))()
    traced = jax.jit(lambda i: mechanism.causal(q, k, v, i=i, **learned))(moved)
    near(known, traced)


def test_keys_are_not_gathered_for_other_positions():
    mechanism = LocalP(2)
    q, k, v, learned = inputs(mechanism, 5, 61)
    turned = np.arange(61)[::-1].astype(np.int32)
    near(
        mechanism.attend(q, k, v, i=np.arange(5), j=turned, **learned),
        mechanism.attend(q, k[::-1], v[::-1], i=np.arange(5), j=np.arange(61), **learned),
    )


def test_gradients_store_gathered_keys_of_few_queries():
    mechanism, T = LocalP(), 2048
    loss = lambda q, k, v, learned: mechanism.attend(q, k, v, **learned).sum()
    x = jax.ShapeDtypeStruct((T, 16), jnp.float32)
    learned = {"w_p": jax.ShapeDtypeStruct((16, 16), jnp.float32), "v_p": jax.ShapeDtypeStruct((16,), jnp.float32)}
    held = jax.jit(jax.grad(loss, (0, 1, 2))).lower(x, x, x, learned).compile().memory_analysis().temp_size_in_bytes
    assert held < T * T * 4 / 4
