from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attnlab import mechanisms
from attnlab.mechanisms import BigBird, Local, LocalP, Longformer, Softmax, Strided
from attnlab.ops.mask import Causal, Full, KeyPadding
from attnlab.ops.score import SCORES, location
from tests.mechanisms.contract import K, V, attend, causal, extend, inputs, near

pytestmark = pytest.mark.usefixtures("x64")


@pytest.mark.parametrize("score", SCORES)
def test_decoding_equals_attending_for_every_score(score):
    mechanism = Softmax(score=SCORES[score], length=8)
    q, k, v, learned = inputs(mechanism, 6)
    whole = attend(mechanism, q, k, v, Causal(), **learned)
    near(causal(mechanism, q, k, v, **learned), whole)
    near(causal(mechanism, q, k, v, block=2, **learned), whole)


@pytest.mark.parametrize("tokens", [128, 203])  # two equal parts, and three unequal ones
@pytest.mark.parametrize(
    "make",
    [Softmax, partial(Softmax, sink="learned", softcap=2.0), partial(Softmax, score=location), partial(Local, 70)],
    ids=["plain", "sink and cap", "location", "window"],
)
def test_some_rows_at_a_time_equal_all_pairs_with_gradients(make, tokens):
    mechanism = make(length=700)
    q, k, v, learned = jax.tree.map(jnp.asarray, inputs(mechanism, tokens))
    random = np.random.default_rng(tokens)
    keep, segment = random.random(tokens) > 0.2, np.sort(random.integers(0, 3, tokens))
    i = np.cumsum(keep) + 5
    order = np.arange(tokens)
    allowed = (order[:, None] >= order) & (segment[:, None] == segment) & keep[:, None] & keep
    bias = lambda q, i, j: 0.1 * jnp.sin((i[:, None] - j[None, :]).astype(q.dtype))

    def by_rows(q, k, v, learned):
        return mechanism.causal(q, k, v, i=i, keep=keep, segment=segment, bias=bias, **learned)

    def at_once(q, k, v, learned):
        return mechanism.weights(q, k, jnp.asarray(allowed), i=i, j=i, bias=bias, **learned) @ v

    (y, back), (whole, through) = (jax.vjp(jax.jit(f), q, k, v, learned) for f in (by_rows, at_once))
    near(y, whole)
    ct = jnp.asarray(random.normal(size=whole.shape))
    jax.tree.map(near, back(ct), through(ct))


@pytest.mark.parametrize("score", SCORES)
def test_rotations_need_a_product_score(score):
    assert Softmax(score=SCORES[score]).traits.rotary == (score in ("dot", "scaled_dot", "cosine"))


@pytest.mark.parametrize("block", [None, 3])
def test_location_uses_the_column_of_the_key_position(block):
    mechanism = Softmax(score=location, length=9, block=block)
    q, k, v, learned = inputs(mechanism, 4)
    j = np.array([7, 0, 3, 5], np.int32)
    y = attend(mechanism, q, k, v, Full(), i=np.arange(4), j=j, **learned)
    shares = np.exp(q @ learned["w"][:, j])
    near(y, shares / shares.sum(axis=1, keepdims=True) @ v)
    keep = np.array([0, 1, 0, 1], bool)
    padded = causal(mechanism, q, k, v, keep=keep, **learned)
    near(padded[keep], causal(mechanism, q[keep], k[keep], v[keep], **learned))


def test_location_decodes_from_a_cache_longer_than_itself_and_no_further_than_it_learned():
    mechanism = Softmax(score=location, length=3)
    q, k, v, learned = inputs(mechanism, 4)
    state = mechanism.start(10, K, V)
    y, state = extend(mechanism, state, q[:3], k[:3], v[:3], **learned)
    near(y, causal(mechanism, q[:3], k[:3], v[:3], **learned))
    with pytest.raises(ValueError, match="a key at position 3"):
        mechanism.extend(state, q[3:], k[3:], v[3:], **learned)
    y, _ = extend(mechanism, state, q[3:], k[3:], v[3:], **learned)
    assert np.isnan(y).all()


def test_location_refuses_more_keys_than_positions_and_grows_by_sized():
    mechanism = Softmax(score=location, length=3)
    q, k, v, learned = inputs(mechanism, 4)
    for run in (mechanism.attend, mechanism.causal):
        with pytest.raises(ValueError, match="positions 0 … 2, got a key at position 3"):
            run(q, k, v, **learned)
    longer = mechanism.with_length(4)
    assert longer.learned == {"w": ("K", 4)}
    assert Softmax().with_length(4) == Softmax()


@pytest.mark.parametrize("make", [Softmax, partial(Softmax, block=2), partial(LocalP, 2)], ids=str)
def test_known_positions_beyond_the_length_are_refused_in_every_form(make):
    mechanism = make(score=location, length=8)
    q, k, v, learned = inputs(mechanism, 4)
    learned = jax.tree.map(jnp.asarray, learned)
    with pytest.raises(ValueError, match="positions 0 … 7, got a key at position 20"):
        mechanism.attend(q, k, v, j=np.array([5, 6, 7, 20]), **learned)
    with pytest.raises(ValueError, match="positions 0 … 7, got a key at position 20"):
        mechanism.weights(
            *map(jnp.asarray, (q, k)), jnp.ones((4, 4), bool), i=np.arange(4), j=np.arange(4) + 17, **learned
        )
    # A masked key may have a position before the first one.
    mask = KeyPadding(np.arange(4) > 0)
    seen = jax.jit(lambda: mechanism.attend(q, k, v, mask, i=np.arange(4), j=np.arange(4) - 1, **learned))()
    assert np.isfinite(seen).all()
    for own in (None, 2):
        with pytest.raises(ValueError, match="positions 0 … 7, got a key at position 23"):
            mechanisms.causal(mechanism, q, k, v, i=np.arange(4) + 20, block=own, **learned)
    q, k, v, learned = inputs(mechanism, 4, 40)  # enough keys for local-p to gather some of them
    with pytest.raises(ValueError, match="positions 0 … 7, got a key at position 39"):
        mechanism.attend(q, k, v, **learned)


@pytest.mark.parametrize("block", [None, 2])
def test_rows_beyond_the_length_are_accepted_if_positions_are_within(block):
    mechanism = Softmax(score=location, length=4, block=block)
    q, k, v, learned = inputs(mechanism, 6)
    keep, segment = np.array([1, 0, 1, 1, 0, 1], bool), np.array([0, 0, 0, 1, 1, 1])
    padded = causal(mechanism, q, k, v, keep=keep, **learned)
    near(padded[keep], causal(mechanism, q[keep], k[keep], v[keep], **learned))
    packed = causal(mechanism, q, k, v, segment=segment, **learned)
    near(packed[3:], causal(mechanism, q[3:], k[3:], v[3:], **learned))
    # Padding may have any position.
    i, learned = np.where(keep, np.cumsum(keep) - 1, 99), jax.tree.map(jnp.asarray, learned)
    near(mechanisms.causal(mechanism, q, k, v, i=i, keep=keep, **learned)[keep], padded[keep])


@pytest.mark.parametrize("kind", [Softmax, Local, Strided, Longformer, BigBird])
def test_its_cost_is_that_of_all_pairs_where_all_are_computed(kind):
    T, dense = 512, Softmax().cost(512, 512, 64, 64).flops
    assert kind(block=None).cost(T, T, 64, 64).flops == dense
    assert (kind(block=64).cost(T, T, 64, 64).flops < dense) == (kind in (Local, Strided, Longformer, BigBird))


def test_invalid_sizes_are_refused():
    for name in ("block", "length"):
        with pytest.raises(ValueError, match=f"{name}=0"):
            Softmax(**{name: 0})
