"""Checks capped scores, c·tanh(s / c) instead of s, before bias and mask, in every form."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.tree_util import Partial

from attnlab.lab.study import Experiment, Study, serialize
from attnlab.lab.study.overrides import apply
from attnlab.mechanisms import Forgetting, Local, LocalP, Mechanism, Reformer, Softmax, Strided
from attnlab.mechanisms.differential import Differential, Differential2
from attnlab.mechanisms.moba import BlockMixture
from attnlab.mechanisms.nsa import NativeSparse
from attnlab.models import Language
from attnlab.ops.mask import Causal, EdgeList, Edges
from attnlab.ops.score import SCORES
from attnlab.tasks import TASKS
from tests.mechanisms.contract import attend, causal, inputs, near
from tests.ops.test_score import PAIRS

pytestmark = pytest.mark.usefixtures("x64")
N, CAP = 7, 0.7
MASK = np.random.default_rng(1).random((N, N)) < 0.7
LOWER = np.tril(np.ones((N, N), bool))


def tilt(slope, q, i, j):
    """Returns a bias that depends on query and distance."""
    return slope * q[:, :1] * (i[:, None] - j[None, :]).astype(q.dtype)


def scores(mechanism, q, k, learned, slope=0.0):
    """Computes c·tanh(s / c) + bias, pair by pair."""
    pair, c = PAIRS[mechanism.score.__name__], mechanism.softcap
    s = [[c * np.tanh(pair(a, b, j, **learned) / c) for j, b in enumerate(k)] for a in q]
    return np.array(s) + tilt(slope, q, np.arange(len(q)), np.arange(len(k)))


def rows(s, mask):
    """Computes a softmax over the pairs of a mask, row by row."""
    weights = np.zeros(s.shape)
    for t, row in enumerate(s):
        if (seen := np.flatnonzero(mask[t])).size:
            share = np.exp(row[seen] - row[seen].max())
            weights[t, seen] = share / share.sum()
    return weights


def given(mechanism):
    q, k, v, learned = inputs(mechanism, N)
    return 2 * q, k, v, learned


@pytest.mark.parametrize("name", SCORES)
@pytest.mark.parametrize("block", [None, 3])
def test_it_is_the_equation_in_every_form(name, block):
    mechanism = Softmax(score=SCORES[name], softcap=CAP, block=block, length=N)
    q, k, v, learned = given(mechanism)
    bias = {"bias": Partial(tilt, np.float64(0.3))}
    whole = rows(scores(mechanism, q, k, learned, 0.3), MASK) @ v
    near(attend(mechanism, q, k, v, Edges(MASK), **bias, **learned), whole)
    past = rows(scores(mechanism, q, k, learned, 0.3), LOWER) @ v
    near(attend(mechanism, q, k, v, Causal(), **bias, **learned), past)
    near(causal(mechanism, q, k, v, **bias, **learned), past)
    near(causal(mechanism, q, k, v, block=2, **bias, **learned), past)  # computed by `extend`
    edges = EdgeList(*np.argwhere(MASK).T.astype(np.int32))
    near(attend(mechanism, q, k, v, edges, **learned), rows(scores(mechanism, q, k, learned), MASK) @ v)


@pytest.mark.parametrize("mechanism", [Local(3, 2, block=2), Strided(stride=3, block=2)], ids=["window", "strided"])
def test_patterns_cap_too(mechanism):
    mechanism = replace(mechanism, softcap=CAP)
    q, k, v, _ = given(mechanism)
    i = np.arange(N, dtype=np.int32)
    allowed = np.asarray(mechanism.pattern(i, i))
    near(attend(mechanism, q, k, v), rows(scores(mechanism, q, k, {}), allowed) @ v)
    near(causal(mechanism, q, k, v), rows(scores(mechanism, q, k, {}), allowed & LOWER) @ v)


def test_the_scores_around_a_predicted_centre_are_capped():
    mechanism = LocalP(width=2, softcap=CAP)
    q, k, v, learned = given(mechanism)
    centre = N / (1 + np.exp(-np.tanh(q @ learned["w_p"]) @ learned["v_p"]))
    distance = np.arange(N)[None, :] - centre[:, None]
    weights = rows(scores(mechanism, q, k, {}), np.abs(distance) <= 2) * np.exp(-2 * (distance / 2) ** 2)
    near(attend(mechanism, q, k, v, **learned), weights @ v)


@pytest.mark.parametrize("block", [None, 3])
def test_gates_are_added_to_capped_scores(block):
    mechanism = Forgetting(softcap=CAP, block=block)
    q, k, v, extra = given(mechanism)
    log_gates = -np.log1p(np.exp(-extra["forget"] - extra["shift"]))
    s = [[CAP * np.tanh(a @ b / np.sqrt(len(a)) / CAP) for b in k] for a in q]
    s = np.array([[s[t][j] + log_gates[j + 1 : t + 1].sum() for j in range(N)] for t in range(N)])
    near(causal(mechanism, q, k, v, **extra), rows(s, LOWER) @ v)
    near(causal(mechanism, q, k, v, block=2, **extra), rows(s, LOWER) @ v)


def capped(q, k, scale=None):
    """Computes c·tanh(q·k/√K / c) of all pairs, or with `scale` instead of 1/√K."""
    return CAP * np.tanh(q @ k.T * (q.shape[1] ** -0.5 if scale is None else scale) / CAP)


def test_the_scores_of_picked_blocks_are_capped_and_the_choice_is_not():
    mechanism = BlockMixture(size=2, picks=2, softcap=CAP)
    q, k, v, _ = given(mechanism)
    seen = np.zeros((N, N), bool)
    for t in range(N):
        earlier = [(q[t] @ k[2 * b : 2 * b + 2].mean(axis=0), b) for b in range(t // 2)]
        for b in [t // 2, *(b for _, b in sorted(earlier)[::-1][:1])]:
            seen[t, 2 * b : 2 * b + 2] = True
    near(causal(mechanism, q, k, v), rows(capped(q, k), seen & LOWER) @ v)


def test_the_scores_of_all_three_parts_of_native_sparse_attention_are_capped():
    mechanism = NativeSparse(size=2, picks=4, window=3, softcap=CAP)  # picks every block
    q, k, v, extra = given(mechanism)
    i = np.arange(N)
    means = lambda x: np.stack([x[2 * b : 2 * b + 2].mean(axis=0) for b in range(N // 2)])
    complete = 2 * np.arange(N // 2)[None, :] + 1 <= i[:, None]
    shares = 1 / (1 + np.exp(-extra["gates"]))
    parts = (
        rows(capped(q, means(k)), complete) @ means(v),
        rows(capped(q, k), LOWER) @ v,
        rows(capped(q, k), LOWER & (i[:, None] - i[None, :] < 3)) @ v,
    )
    near(causal(mechanism, q, k, v, **extra), sum(shares[:, n : n + 1] * part for n, part in enumerate(parts)))


def test_the_scores_of_a_bucket_are_capped():
    mechanism = Reformer(buckets=2, rounds=40, softcap=CAP)  # nearly every pair shares a bucket in some round
    q, k, v, _ = given(mechanism)
    i = np.arange(N, dtype=np.int32)
    met = np.asarray(mechanism.weights(jnp.asarray(q), jnp.asarray(k), np.ones((N, N), bool), i=i, j=i)) > 0
    assert met.sum() > N
    unit = k / np.sqrt((k**2).mean(axis=1, keepdims=True) + 1e-6)
    near(attend(mechanism, q, k, v), rows(capped(q, unit), met) @ v)


@pytest.mark.parametrize("block", [None, 3])
@pytest.mark.parametrize("kind", [Differential, Differential2])
def test_both_attentions_of_a_difference_are_capped(kind, block):
    mechanism = kind(block=block, softcap=CAP)
    q, k, v, extra = given(mechanism)
    if kind is Differential:
        half, products = q.shape[1] // 2, extra["mix_q"] * extra["mix_k"]
        pairs = [(q[:, :half], k[:, :half]), (q[:, half:], k[:, half:])]
        share = np.exp(products[:half].sum()) - np.exp(products[half:].sum()) + 0.8
    else:
        pairs, share = [(q, k), (extra["other"], k)], 1 / (1 + np.exp(-extra["mix"][:, None]))
    one, other = (rows(capped(*pair), LOWER) @ v for pair in pairs)
    near(causal(mechanism, q, k, v, **extra), one - share * other)


@pytest.mark.parametrize("block", [None, 3])
@pytest.mark.parametrize("name", ["scaled_dot", "cosine", "additive"])
@pytest.mark.parametrize("biased", [False, True])
def test_gradients_are_those_of_finite_differences(name, block, biased):
    mechanism = Softmax(score=SCORES[name], softcap=CAP, block=block)
    q, k, v, learned = (jax.tree.map(jnp.asarray, x) for x in given(mechanism))
    target = np.random.default_rng(2).standard_normal(v.shape)

    @jax.jit
    def loss(q, k, v, learned, slope):
        bias = Partial(tilt, slope) if biased else None
        return jnp.sum(target * mechanism.attend(q, k, v, Edges(MASK), bias=bias, **learned))

    at, step = (q, k, v, learned, jnp.asarray(0.3)), 1e-5
    slopes = jax.grad(loss, argnums=range(5))(*at)
    rng = np.random.default_rng(3)
    for part in range(5):
        for _ in range(2):
            way = jax.tree.map(lambda x: jnp.asarray(rng.standard_normal(x.shape)), at[part])
            moved = [
                loss(*at[:part], jax.tree.map(lambda x, d, s=sign: x + s * step * d, at[part], way), *at[part + 1 :])
                for sign in (1, -1)
            ]
            along = sum(
                jnp.sum(x * d) for x, d in zip(jax.tree.leaves(slopes[part]), jax.tree.leaves(way), strict=True)
            )
            np.testing.assert_allclose((moved[0] - moved[1]) / (2 * step), along, atol=1e-8)


@pytest.mark.parametrize(
    "mechanism", [Softmax(), Softmax(block=3), Softmax(score=SCORES["gat"]), Forgetting(block=3), LocalP(2)], ids=str
)
def test_a_far_cap_is_no_cap_and_a_near_one_is_seen(mechanism):
    q, k, v, extra = given(mechanism)
    plain = causal(mechanism, q, k, v, **extra)
    near(causal(replace(mechanism, softcap=1e7), q, k, v, **extra), plain)
    assert np.abs(causal(replace(mechanism, softcap=0.1), q, k, v, **extra) - plain).max() > 0.01


def test_scores_stay_below_the_cap_however_large():
    mechanism = Softmax(softcap=2.0)
    x = jnp.asarray([[1e6], [-1e6]], jnp.float32)
    weights = mechanism.weights(x, x, jnp.ones((2, 2), bool), i=np.arange(2), j=np.arange(2))
    np.testing.assert_allclose(weights[0], np.exp([2, -2]) / np.exp([2, -2]).sum(), rtol=1e-6)


def test_rotary_positions_still_serve():
    assert Softmax(softcap=50.0).traits.rotary
    assert not Softmax(score=SCORES["gat"], softcap=50.0).traits.rotary


@pytest.mark.parametrize("value", [0.0, -1.0, float("inf"), float("nan")])
@pytest.mark.parametrize(
    "kind", [Softmax, Local, LocalP, Forgetting, BlockMixture, NativeSparse, Reformer, Differential, Differential2]
)
def test_values_that_are_no_bound_are_refused(kind: type[Mechanism], value):
    with pytest.raises(ValueError, match=f"softcap={value!r} must be above 0 and finite"):
        kind(softcap=value)


def test_it_is_set_from_the_command_line_and_read_back():
    study = Study(Experiment(TASKS["shakespeare"], Language(width=16, heads=2, layers=1)))
    experiment = apply(study, ["model.mechanism.softcap=50"]).base
    assert experiment.model.mechanism == Softmax(softcap=50.0)
    assert serialize.read(serialize.write(experiment)) == experiment
    with pytest.raises(ValueError, match="softcap='high' must be a number, or none"):
        apply(study, ["model.mechanism.softcap=high"])
