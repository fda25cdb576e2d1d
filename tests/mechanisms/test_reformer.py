import math
from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attnlab.mechanisms import reformer
from attnlab.mechanisms.reformer import Reformer, _near, block_visits
from attnlab.ops.mask import Causal, Full, Window
from tests.mechanisms.contract import attend, causal, inputs, near

pytestmark = pytest.mark.usefixtures("x64")


@pytest.fixture
def sorting(monkeypatch):
    """Makes the mechanism sort its buckets even if there are few pairs."""
    monkeypatch.setattr(reformer, "PAIRS", 0)


def by_hand(mechanism, q, k, v, sees):
    """Computes the definition in loops."""
    q, k, v = (np.asarray(x) for x in (q, k, v))
    half = mechanism.buckets // 2
    shape = (q.shape[1], mechanism.rounds * half)
    turns = np.asarray(jax.random.normal(jax.random.key(mechanism.seed), shape, jnp.float32), np.float64)
    y = np.zeros((len(q), v.shape[1]))
    for t in range(len(q)):
        shares = {}
        for j in range(len(k)):
            met = False
            for n in range(mechanism.rounds):
                R = turns[:, n * half : (n + 1) * half]
                one, other = (np.argmax(np.concatenate([x @ R, -x @ R])) for x in (q[t], k[j]))
                met |= one == other
            if met and sees(t, j):
                # As in the authors' code, a key is divided by the root of its mean square, and then by √K.
                key = k[j] / math.sqrt(np.mean(k[j] ** 2) + 1e-6) / math.sqrt(len(k[j]))
                shares[j] = np.exp(q[t] @ key)
        for j, share in shares.items():
            y[t] += share / sum(shares.values()) * v[j]
    return y


def test_it_is_its_definition():
    mechanism = Reformer(buckets=6, rounds=2, seed=3, block=None)
    q, k, v, _ = inputs(mechanism, 8, 8)
    near(attend(mechanism, q, k, v, Causal()), by_hand(mechanism, q, k, v, lambda t, j: j <= t))


def test_a_key_equal_to_its_query_has_the_published_weight():
    """Checks e⁸ / (e⁸ + 30): with ‖q‖ = √K = 8, the score is 8 with itself and 0 with 30 orthogonal keys."""
    q = 8.0 * np.eye(64)[:1]
    k = 50.0 * np.eye(64)[:31]  # long enough to make ε negligible
    always = Reformer(buckets=2, rounds=64)  # with two buckets, every pair shares one in some round
    found = attend(always, q, k, np.eye(31))
    np.testing.assert_allclose(found[0, 0], 2980.957987 / 3010.957987, rtol=1e-6)
    np.testing.assert_allclose(found[0, 1:], 1 / 3010.957987, rtol=1e-5)
    # The paper taken literally divides by √K once more: e / (e + 30).
    found = attend(replace(always, scale_queries=True), q, k, np.eye(31))
    np.testing.assert_allclose(found[0, 0], 0.0830814357, rtol=1e-5)


def test_among_gaussian_keys_a_near_copy_of_the_query_has_most_of_the_weight():
    """Compares with PyTorch's attention at a scale of one, with keys normalised by PyTorch's own function."""
    torch = pytest.importorskip("torch")
    rng = np.random.default_rng(0)
    q, k = rng.normal(size=(1, 64)), rng.normal(size=(31, 64))
    k[7] = q[0] + 0.01 * rng.normal(size=64)
    found = attend(Reformer(buckets=2, rounds=64), q, k, np.eye(31))
    keys = torch.nn.functional.rms_norm(torch.tensor(k), (64,), eps=1e-6) / 8
    other = torch.nn.functional.scaled_dot_product_attention(torch.tensor(q), keys, torch.eye(31).double(), scale=1.0)
    near(found, other.numpy(), 1e-9)
    assert 0.95 < found[0, 7] < 0.99


@pytest.mark.parametrize(
    ("rounds", "T", "S", "mask"),
    [(1, 13, 13, Causal()), (3, 19, 13, Full()), (3, 5, 18, Window(4, 9))],
    ids=["causal", "full", "window"],
)
def test_sorted_buckets_equal_all_pairs(sorting, rounds, T, S, mask):
    mechanism = Reformer(buckets=4, rounds=rounds, block=4)
    q, k, v, _ = inputs(mechanism, T, S)
    target = jax.random.normal(jax.random.key(1), (T, v.shape[1]))

    def total(mechanism):
        return jax.value_and_grad(lambda *x: jnp.sum(mechanism.attend(*x, mask) * target), (0, 1, 2))

    run = jax.jit(lambda *x: (total(mechanism)(*x), total(replace(mechanism, block=None))(*x)))
    near(*run(q, k, v))


def test_heads_with_uneven_buckets_are_independent(sorting):
    """Checks heads that are batched: the batch takes as many rounds as the head that takes most."""
    mechanism = Reformer(buckets=8, rounds=2, block=4)
    q, k, v = (jnp.stack(x) for x in zip(*(inputs(mechanism, 40, seed=n)[:3] for n in range(3)), strict=True))
    # One head has all tokens in one bucket, and another nearly all.
    near_one = lambda x: x.at[0].set(x[0, :1]).at[1].add(4.0)
    q, k, target = near_one(q), near_one(k), jax.random.normal(jax.random.key(1), v.shape)
    rounds = [[len(np.unique(mechanism._hash(x)[:, 0])) for x in (q[n], k[n])] for n in range(3)]
    assert rounds[0] == [1, 1]
    assert min(rounds[2]) > 2
    total = lambda q, k, v, target: jnp.sum(mechanism.attend(q, k, v, Full()) * target)
    run = jax.jit(jax.value_and_grad(total, (0, 1, 2)))
    together = jax.jit(jax.vmap(jax.value_and_grad(total, (0, 1, 2))))(q, k, v, target)
    alone = [run(*(x[n] for x in (q, k, v, target))) for n in range(3)]
    near(together, jax.tree.map(lambda *x: jnp.stack(x), *alone))


def test_packed_and_padded_tokens(sorting):
    mechanism = Reformer(buckets=4, rounds=3, block=4)
    q, k, v, _ = inputs(mechanism, 14)
    keep, segment = jnp.arange(14) % 5 > 0, jnp.arange(14) // 8
    packed = causal(mechanism, q, k, v, keep=keep, segment=segment)
    near(packed, causal(replace(mechanism, block=None), q, k, v, keep=keep, segment=segment))


@pytest.mark.parametrize("block", [None, 2])
def test_a_query_alone_in_its_bucket_gives_zero(sorting, block):
    mechanism = Reformer(buckets=2, rounds=1, block=block)
    q, v = jnp.array([[1.0, 2, 3], [-1, -2, -3]]), jnp.ones((2, 2))
    np.testing.assert_allclose(attend(mechanism, q, q[:1], v[:1]), [[1, 1], [0, 0]])


@pytest.mark.parametrize(("T", "S"), [(256, 256), (1, 4096), (257, 257), (2, 40_000)])
def test_few_pairs_are_all_compared(T, S):
    """Checks the traced program and the declared cost."""
    mechanism, few = Reformer(), T * S <= 256**2
    q, k, v, _ = inputs(mechanism, T, S)
    trace = str(jax.make_jaxpr(lambda *x: mechanism.attend(*x, Full()))(q, k, v))
    assert (" sort[" in trace) != few
    assert (mechanism.cost(T, S, 4, 6) == replace(mechanism, block=None).cost(T, S, 4, 6)) == few


def test_only_blocks_with_common_buckets_are_visited():
    one, other = jnp.array([0, 0, 1, 2, 5, 5, 7]), jnp.array([0, 1, 1, 1, 2, 3, 3, 6, 6])
    schedule = block_visits(one, other, 2, 4)
    visits = [
        schedule.masked.blocks[a, : schedule.masked.counts[a]].tolist() for a in range(len(schedule.masked.counts))
    ]
    assert len(visits) == 4
    size = schedule.size
    for a, blocks in enumerate(visits):
        for b in range(-(-9 // size)):
            # A block of queries covers the range from its first bucket to its last.
            rows, columns = one[a * 2 : a * 2 + 2], other[b * size : b * size + size]
            meets = bool(((columns >= rows.min()) & (columns <= rows.max())).any())
            assert (b in blocks) == meets


@pytest.mark.parametrize("T", [512, 1024, 4096])
def test_the_number_of_visited_blocks_is_near_the_declared_one(T):
    mechanism = Reformer().with_length(T)
    q, k = (np.random.default_rng(n).standard_normal((T, 64)).astype(np.float32) for n in (0, 1))
    of_q, of_k = (jnp.sort(mechanism._hash(jnp.asarray(x)), axis=0) for x in (q, k))
    near = _near(T, mechanism._buckets, 64)
    schedules = [block_visits(of_q[:, n], of_k[:, n], mechanism.block, near) for n in range(mechanism.rounds)]
    met = np.mean([np.mean(schedule.masked.counts) for schedule in schedules])
    assert 0.7 <= schedules[0].masked.expected_count / met <= 1.4


def test_the_default_number_of_buckets_grows_with_length():
    """Checks that each bucket has about the length of a block, and that a number set by the user is kept."""
    sized = {T: Reformer().with_length(T).buckets for T in (9, 512, 1000, 4096)}
    assert sized == {9: None, 512: None, 1000: 16, 4096: 64}
    assert Reformer(block=16).with_length(512).buckets == 32
    for named in (Reformer(buckets=4), Reformer(block=None)):
        assert named.with_length(4096) == named
    # Without a length, the number of buckets is that for short sequences, at every length.
    x = np.random.default_rng(0).standard_normal((4096, 8))
    assert set(np.unique(Reformer()._hash(jnp.asarray(x)))) == set(range(8))


@pytest.mark.parametrize(
    ("field", "value"), [("buckets", 3), ("buckets", 0), ("rounds", 0), ("block", 0), ("seed", -1)]
)
def test_invalid_sizes_are_refused(field, value):
    with pytest.raises(ValueError, match=f"{field}={value}"):
        Reformer(**{field: value})
