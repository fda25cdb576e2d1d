import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attnlab.mechanisms import Sinkhorn, Softmax
from attnlab.ops.mask import Causal, KeyPadding, QueryPadding
from tests.mechanisms.contract import V, attend, attend_back, inputs, near, weights

pytestmark = pytest.mark.usefixtures("x64")
THREES = Sinkhorn(block=3)
TARGET = np.random.default_rng(3).normal(size=(12, V))


def balanced(scores, steps):
    """Normalises rows and columns alternately, ending with rows."""
    s = np.exp(scores)
    for _ in range(steps):
        s = s / s.sum(axis=1, keepdims=True)
        s = s / s.sum(axis=0, keepdims=True)
    return s / s.sum(axis=1, keepdims=True)


def written_out(q, k, v, sort, block, steps=8, temperature=0.75, i=None, j=None):
    """Computes the definition block by block and slot by slot. Queries and keys are in the order of their positions."""
    q, k, v, sort = (np.asarray(x) for x in (q, k, v, sort))
    T, S, root = len(q), len(k), np.sqrt(q.shape[1])
    i, j = np.arange(S - T, S) if i is None else i, np.arange(S) if j is None else j
    keys = [list(range(n, min(n + block, S))) for n in range(0, S, block)]
    stands = [sum(j <= i[-1]) - 1 - (T - 1 - t) for t in range(T)]
    groups = {}
    for t in range(T):
        groups.setdefault(stands[t] // block, []).append(t)
    means_q = np.array([q[group].mean(axis=0) for group in groups.values()])
    means_k = np.array([k[group].mean(axis=0) for group in keys])
    sorting = balanced(means_q @ sort @ means_k.T / root / temperature, steps)
    y = np.zeros((T, v.shape[1]))
    for row, (place, group) in zip(sorting, groups.items(), strict=True):
        own = keys[min(max(place, 0), len(keys) - 1)]
        entries = [(1.0, k[s], v[s]) for s in own]
        for slot in range(block):
            holders = [(row[b], members[slot]) for b, members in enumerate(keys) if slot < len(members)]
            if mass := sum(share for share, _ in holders):
                mixed = lambda x, holders=holders, mass=mass: sum(share * x[s] for share, s in holders) / mass
                entries.append((mass, mixed(k), mixed(v)))
        for t in group:
            share = np.array([mass * np.exp(q[t] @ key / root) for mass, key, _ in entries])
            y[t] = sum(w / share.sum() * value for w, (_, _, value) in zip(share, entries, strict=True))
    return y


@pytest.mark.parametrize(("T", "S"), [(12, 12), (11, 11), (5, 11), (11, 5), (1, 7)])
def test_it_equals_its_definition(T, S):
    q, k, v, learned = inputs(THREES, T, S)
    near(attend(THREES, q, k, v, **learned), written_out(q, k, v, **learned, block=3))


@pytest.mark.parametrize("other", [Sinkhorn(block=2, steps=1), Sinkhorn(block=5, temperature=0.2)], ids=str)
def test_every_field_counts(other):
    q, k, v, learned = inputs(other, 11)
    expected = written_out(q, k, v, **learned, block=other.block, steps=other.steps, temperature=other.temperature)
    near(attend(other, q, k, v, **learned), expected)


def test_given_positions_are_those_of_queries():
    q, k, v, learned = inputs(THREES, 4, 9)
    i, j = np.array([1, 2, 5, 6]), np.array([0, 1, 2, 3, 5, 6, 8, 9, 11])
    expected = written_out(q, k, v, **learned, block=3, i=i, j=j)
    near(attend(THREES, q, k, v, i=jnp.asarray(i), j=jnp.asarray(j), **learned), expected)
    order = jax.random.permutation(jax.random.key(2), 9)
    y = attend(THREES, q, k[order], v[order], i=jnp.asarray(i), j=jnp.asarray(j)[order], **learned)
    near(y, expected)


def test_padding_has_no_effect_at_any_position():
    q, k, v, learned = inputs(THREES, 12)
    for kept in ("111111110000", "000011111111", "101101110101", "110000111111"):
        keep = np.array([c == "1" for c in kept])
        garbage = [jnp.where(keep[:, None], x, jnp.nan) for x in (q, k, v)]
        y, (dq, dk, dv, _) = attend_back(
            THREES, TARGET, *garbage, learned, KeyPadding(jnp.asarray(keep)) & QueryPadding(jnp.asarray(keep))
        )
        alone, back = attend_back(THREES, TARGET[keep], q[keep], k[keep], v[keep], learned)
        near(y[keep], alone)
        near(y[keep], written_out(q[keep], k[keep], v[keep], **learned, block=3))
        near((dq[keep], dk[keep], dv[keep]), back[:3])
        assert not any(np.any(x[~keep]) for x in (y, dq, dk, dv))


def test_one_block_is_softmax_attention():
    wide = Sinkhorn(block=16)
    q, k, v, learned = inputs(wide, 11)
    near(attend(wide, q, k, v, **learned), attend(Softmax(), q, k, v))


def test_a_hard_sort_attends_to_its_own_and_the_selected_block():
    q, k, v, _ = inputs(THREES, 9)
    # The blocks of queries match the blocks of keys by a permutation: 0 → 2, 1 → 0, 2 → 1.
    chosen = np.array([2, 0, 1])
    centre = lambda x: x - x.reshape(3, 3, 4).mean(axis=1, keepdims=True).repeat(3, axis=1).reshape(9, 4)
    axes = np.eye(4)[:3] * 30
    q = centre(q) + np.repeat(axes, 3, axis=0)
    k = centre(k) + np.repeat(axes[np.argsort(chosen)], 3, axis=0)
    y = attend(THREES, q, k, v, sort=jnp.eye(4))
    for block in range(3):
        own, other = np.arange(3) + 3 * block, np.arange(3) + 3 * chosen[block]
        both = np.concatenate([own, other])
        near(y[own], attend(Softmax(), q[own], k[both], v[both]), 1e-6)


def test_rows_of_its_map_sum_to_one_and_all_weights_are_positive():
    q, k, _, learned = inputs(THREES, 12)
    map_ = weights(THREES, q, k, **learned)
    near(map_.sum(axis=1), np.ones(12))
    assert (map_ >= 0).all()
    assert (map_ > 0).all(), "every key is in some sorted block"


def test_an_output_depends_on_other_queries():
    assert not THREES.traits.row_independent
    q, k, v, learned = inputs(THREES, 12)
    changed = attend(THREES, q + (np.arange(12) == 7)[:, None], k, v, **learned)
    assert np.abs(changed - attend(THREES, q, k, v, **learned))[:6].max() > 1e-6


def test_long_sequences_are_accurate_in_float32():
    keys = jax.random.split(jax.random.key(0), 3)
    q, k, v = (jax.random.normal(key, (2048, 32), jnp.float32) for key in keys)
    learned = Sinkhorn().initial(jax.random.key(1), 32, 32)
    rounded = (q * 3, k * 3, v, learned)
    exact = jax.tree.map(lambda x: x.astype(jnp.float64), rounded)
    found, expected = (np.asarray(attend(Sinkhorn(), *x[:3], **x[3])) for x in (rounded, exact))
    assert np.abs(found - expected).max() <= 5e-6 * np.abs(expected).max()


def test_declared_flops_agree_with_the_compiler():
    T, S, K = 256, 320, 16
    mechanism = Sinkhorn(block=32)
    shapes = [jax.ShapeDtypeStruct(s, jnp.float32) for s in ((T, K), (S, K), (S, K))]
    learned = mechanism.initial(jax.random.key(0), K, K)
    counted = attend.lower(mechanism, *shapes, **learned).compile().cost_analysis()["flops"]
    assert 0.5 <= mechanism.cost(T, S, K, K).flops / counted <= 2


def test_fields_and_masks_that_cannot_work_are_refused_by_name():
    for field in ("block", "steps"):
        with pytest.raises(ValueError, match=f"{field}=0 must be at least 1"):
            Sinkhorn(**{field: 0})
    for bad in (0.0, -1.0, float("nan")):
        with pytest.raises(ValueError, match=f"temperature={bad} must be above 0"):
            Sinkhorn(temperature=bad)
    q, k, v, learned = inputs(THREES, 4)
    with pytest.raises(NotImplementedError, match=r"Sinkhorn.* does not support Causal"):
        THREES.attend(q, k, v, Causal(), **learned)
