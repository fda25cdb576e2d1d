"""Checks mechanisms against their equations, written token by token and pair by pair in float64."""

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attnlab import mechanisms
from attnlab.mechanisms import MECHANISMS
from attnlab.mechanisms.bidirectional import Bidirectional
from attnlab.mechanisms.delta import Delta
from attnlab.mechanisms.delta_product import DeltaProduct
from attnlab.mechanisms.differential import Differential, Differential2
from attnlab.mechanisms.forgetting import Forgetting
from attnlab.mechanisms.gated_delta import GatedDelta
from attnlab.mechanisms.gsa import GatedSlots
from attnlab.mechanisms.hgrn2 import Hgrn2
from attnlab.mechanisms.kda import Kda
from attnlab.mechanisms.log_linear import LogLinear
from attnlab.mechanisms.mamba3 import Mamba3
from attnlab.mechanisms.moba import BlockMixture
from attnlab.mechanisms.nsa import NativeSparse
from attnlab.mechanisms.path import Path
from attnlab.mechanisms.softmax import Softmax
from attnlab.mechanisms.stick_breaking import StickBreaking
from attnlab.ops.mask import Full, KeyPadding, QueryPadding, Segments
from tests.mechanisms.contract import K, V, attend, causal, inputs
from tests.mechanisms.test_gates import packings, softplus

pytestmark = pytest.mark.usefixtures("x64")


def sigmoid(x):
    return np.exp(-softplus(-x))


def unit(x):
    return x / math.sqrt(math.fsum(c * c for c in x) + 1e-6)


def gated_delta_2(S, t, q, k, v, x):
    key = unit(k[t])
    gates = np.exp(-np.exp(x["rate"]) * softplus(x["dt"][t] + x["shift"]))
    S = gates[:, None] * S
    S = S - np.outer(key, (sigmoid(x["erase"][t]) * key) @ S) + np.outer(key, sigmoid(x["write"][t]) * v[t])
    return S, unit(q[t]) / math.sqrt(K) @ S


def delta_product(S, t, q, k, v, x):
    S = np.exp(-np.exp(x["rate"]) * softplus(x["dt"][t] + x["shift"])) * S
    for key, value, beta in zip([k[t], *x["more_keys"][t]], [v[t], *x["more_values"][t]], x["beta"][t], strict=True):
        key, beta = unit(key), 2 * sigmoid(beta)
        S = (np.eye(K) - beta * np.outer(key, key)) @ S + beta * np.outer(key, value)
    return S, unit(q[t]) / math.sqrt(K) @ S


def hgrn2(S, t, q, k, v, x):
    forget = sigmoid(k[t])
    S = forget[:, None] * S + np.outer(1 - forget, v[t])
    return S, q[t] * sigmoid(q[t]) @ S


def mlstm(S, t, q, k, v, x):
    forget, write = sigmoid(x["forget"][t] + x["forget_shift"]), np.exp(x["write"][t] + x["write_shift"])
    S = np.zeros((K, V + 1)) if not np.any(S) else S
    S = forget * S + write * np.outer(k[t], np.append(v[t], 1))
    y = q[t] / math.sqrt(K) @ S
    return S, y[:-1] / max(abs(y[-1]), 1)


def rwkv7(S, t, q, k, v, x):
    gates, a = np.exp(-math.exp(-0.5) * sigmoid(x["decay"][t])), sigmoid(x["strength"][t])
    kappa = unit(k[t] * x["removal"])
    written = k[t] * (1 + (a - 1) * x["replacement"])
    S = gates[:, None] * S - np.outer(a * kappa, kappa @ S) + np.outer(written, v[t])
    return S, q[t] @ S


def mamba(S, t, q, k, v, x):
    step = softplus(x["dt"][t] + x["shift"])
    S = np.exp(-np.exp(x["rate"]) * step[None, :]) * S + np.outer(k[t], step * v[t])
    return S, q[t] @ S


def mamba3(S, t, q, k, v, x):
    """Takes one step in complex numbers: each pair of channels is one, and its angles are those of a complex decay."""
    state, angle, before = S if isinstance(S, tuple) else (np.zeros((K, V)), np.zeros(K // 2), np.zeros((K, V)))
    step, share = softplus(x["dt"][t] + x["shift"]), sigmoid(x["trapezoid"][t])
    raw = x["decay"][t]
    fade = np.exp(-step * (1 + raw if raw > 0 else max(1 / (1 - raw), 1e-4)))
    angle = angle + np.pi * step * np.tanh(x["angle"][t])
    turn = lambda row: ((row[0::2] + 1j * row[1::2]) * np.exp(1j * angle)).view(np.float64)
    write = np.outer(turn(k[t] + x["k_bias"]), v[t])
    state = fade * state + (1 - share) * step * fade * before + share * step * write
    return (state, angle, write), turn(q[t] + x["q_bias"]) @ state


def gsa(S, t, q, k, v, x):
    silu = lambda x: x * sigmoid(x)
    keys, values = S if isinstance(S, tuple) else (np.zeros((K, x["gate"].shape[1])), np.zeros((x["gate"].shape[1], V)))
    gates = sigmoid(x["gate"][t]) ** (1 / 8)
    keys = keys * gates[None, :] + np.outer(silu(k[t]), 1 - gates)
    values = values * gates[:, None] + np.outer(1 - gates, v[t])
    shares = np.exp(silu(q[t]) @ keys)
    return (keys, values), shares / shares.sum() @ values


def mesa(S, t, q, k, v, x):
    H, G = S if isinstance(S, tuple) else (np.zeros((K, K)), np.zeros((K, V)))
    gate, beta, key = sigmoid(x["forget"][t]), sigmoid(x["beta"][t]), unit(k[t])
    H, G = gate * H + beta * np.outer(key, key), gate * G + beta * np.outer(key, v[t])
    return (H, G), np.linalg.solve(H + np.diag(0.25 + softplus(x["ridge"])), unit(q[t])) @ G


STEPS = {
    "gated-delta-2": gated_delta_2,
    "delta-product": delta_product,
    "gsa": gsa,
    "mesa": mesa,
    "hgrn2": hgrn2,
    "mlstm": mlstm,
    "rwkv7": rwkv7,
    "mamba": mamba,
    "mamba3": mamba3,
}


def recurrence(step, q, k, v, extra, keep, segment):
    """Takes one step after another. A new segment begins with an empty state, and padding is skipped."""
    q, k, v, extra = jax.tree.map(lambda x: np.asarray(x, np.float64), (q, k, v, extra))
    y, S, before = np.zeros(v.shape), None, None
    for t in np.where(keep)[0]:
        if S is None or segment[t] != before:
            S, before = np.zeros((q.shape[1], v.shape[1])), segment[t]
        S, y[t] = step(S, t, q, k, v, extra)
    return y


def pairs(weights, q, k, v, extra, keep, segment):
    """Returns the weighted sums of the values that each token sees, in their order.

    The token's own value is the last.
    """
    q, k, v, extra = jax.tree.map(lambda x: np.asarray(x, np.float64), (q, k, v, extra))
    run = np.cumsum(np.diff(np.where(keep, segment, -1)[keep], prepend=0) != 0)
    at, y = np.where(keep)[0], np.zeros(v.shape)
    for n, t in enumerate(at):
        seen = at[: n + 1][run[: n + 1] == run[n]]
        y[t] = weights(q[t], k[seen], seen, extra) @ v[seen]
    return y


def forgetting(q, k, seen, x):
    log_gates = -softplus(-(x["forget"][seen] + x["shift"]))
    return softmax(np.array([q @ k[j] / math.sqrt(K) + math.fsum(log_gates[j + 1 :]) for j in range(len(k))]))


def stick_breaking(q, k, seen, x):
    beta = sigmoid(k @ q / math.sqrt(K))
    beta[-1] = 0  # a token does not see itself
    return np.array([beta[j] * math.prod(1 - beta[j + 1 :]) for j in range(len(k))])


def sink(q, k, seen, x):
    shares = np.exp(k @ q / math.sqrt(K))
    return shares / (shares.sum() + np.exp(x.get("sink", 0.0)))


def softmax(scores):
    shares = np.exp(scores - scores.max())
    return shares / shares.sum()


def path(q, k, seen, x):
    scores = []
    for j in range(len(k)):
        key = k[j]
        for t in seen[j + 1 :]:
            w = unit(x["path"][t])
            key = key - 2 * sigmoid(x["beta"][t]) * (w @ key) * w
        scores.append(q @ key / math.sqrt(K))
    return softmax(np.array(scores))


def moba(q, k, seen, x):
    # Blocks of 8 tokens of the sequence, of which two are picked.
    own, scores = (len(k) - 1) // 8, k @ q
    means = [scores[8 * b : 8 * (b + 1)].mean() for b in range(own)]
    best = [own, *([int(np.argmax(means))] if means else [])]
    return softmax(np.where(np.isin(np.arange(len(k)) // 8, best), scores / math.sqrt(K), -np.inf))


def differential(q, k, seen, x):
    half = K // 2
    mix = np.exp(x["mix_q"][:half] @ x["mix_k"][:half]) - np.exp(x["mix_q"][half:] @ x["mix_k"][half:]) + 0.8
    one, other = (softmax(k[:, part] @ q[part] / math.sqrt(half)) for part in (slice(0, half), slice(half, K)))
    return one - mix * other


def differential_2(q, k, seen, x):
    other, mix = x["other"][seen[-1]], sigmoid(x["mix"][seen[-1]])
    return softmax(k @ q / math.sqrt(K)) - mix * softmax(k @ other / math.sqrt(K))


def log_linear(q, k, seen, x):
    # Levels follow from the binary digits of the two positions.
    n, step = len(k), softplus(x["dt"][seen] + x["shift"])
    own, scales = n - 1, softplus(x["levels"][seen[-1]])
    level = [0 if j == own else 1 + max(b for b in range(20) if (own >> b) % 2 != (j >> b) % 2) for j in range(n)]
    decay = np.array([math.exp(-np.exp(x["rate"]) * math.fsum(step[j + 1 :])) for j in range(n)])
    return scales[level] * decay * step * (k @ q)


PAIRS = {
    "log-linear": log_linear,
    "path": path,
    "differential": differential,
    "differential-2": differential_2,
    "forgetting": forgetting,
    "stick-breaking": stick_breaking,
    "softmax-sink": sink,
    "softmax-plus-one": sink,
}


def expected(name, *arguments):
    return recurrence(STEPS[name], *arguments) if name in STEPS else pairs(PAIRS[name], *arguments)


@pytest.mark.parametrize("name", [*STEPS, *PAIRS])
def test_a_mechanism_is_its_equation_with_random_padding_and_packing(name):
    mechanism = MECHANISMS[name]
    q, k, v, extra = inputs(mechanism, 90)
    extra |= {n: extra[n] + 0.3 for n in mechanism.learned}
    for keep, segment in packings(90, 4):
        keep, segment = np.asarray(keep, bool), np.asarray(segment, np.int32)
        y = causal(mechanism, q, k, v, keep=keep, segment=segment, **extra)
        np.testing.assert_allclose(y, expected(name, q, k, v, extra, keep, segment), atol=1e-10)


@pytest.mark.parametrize(
    "mechanism",
    [
        Forgetting(block=16),
        StickBreaking(block=16),
        Softmax(sink="learned", block=16),
        Softmax(sink="zero", block=16),
        Path(block=16),
        Differential(block=16),
        Differential2(block=16),
        LogLinear(block=8),
    ],
    ids=[
        "forgetting",
        "stick-breaking",
        "softmax-sink",
        "softmax-plus-one",
        "path",
        "differential",
        "differential-2",
        "log-linear",
    ],
)
def test_blocks_give_the_equation_too(mechanism, request):
    name = request.node.callspec.id
    q, k, v, extra = inputs(mechanism, 90)
    extra |= {n: extra[n] + 0.3 for n in mechanism.learned}
    for keep, segment in packings(90, 3):
        keep, segment = np.asarray(keep, bool), np.asarray(segment, np.int32)
        y = causal(mechanism, q, k, v, keep=keep, segment=segment, **extra)
        np.testing.assert_allclose(y, expected(name, q, k, v, extra, keep, segment), atol=1e-10)


def test_picked_blocks_are_those_with_the_largest_mean():
    mechanism = BlockMixture(size=8, picks=2)
    q, k, v, extra = inputs(mechanism, 90)
    for keep, segment in packings(90, 4):
        keep, segment = np.asarray(keep, bool), np.asarray(segment, np.int32)
        y = causal(mechanism, q, k, v, keep=keep, segment=segment)
        np.testing.assert_allclose(y, pairs(moba, q, k, v, extra, keep, segment), atol=1e-10)


def test_picking_all_blocks_is_softmax_attention():
    q, k, v, _ = inputs(Softmax(), 50)
    every = BlockMixture(size=8, picks=7)
    np.testing.assert_allclose(causal(every, q, k, v), causal(Softmax(), q, k, v), atol=1e-12)
    np.testing.assert_allclose(causal(every, q, k, v, block=3), causal(Softmax(), q, k, v), atol=1e-12)
    with pytest.raises(ValueError, match="50 keys have positions 0 … 55 in blocks of 8, got 56"):
        mechanisms.causal(every, q, k, v, i=np.arange(7, 57))


def nsa(q, k, seen, x):
    # Blocks of 4 tokens of the sequence, three of them picked, and a window of 5.
    n, scores = len(k), k @ q / math.sqrt(K)
    block = np.arange(n) // 4
    own, whole = block[-1], n // 4
    compressed = softmax(np.array([scores[block == b].mean() for b in range(whole)])) if whole else np.zeros(0)
    forced = {0, own, max(own - 1, 0)}
    rest = sorted((b for b in range(whole) if b not in forced), key=lambda b: -compressed[b])
    picked = np.isin(block, [*forced, *rest[: 3 - len(forced)]])
    shares = sigmoid(x["gates"][seen[-1]])
    one = np.append(np.repeat(compressed / 4, 4), np.zeros(n - 4 * whole))
    return (
        shares[0] * one
        + shares[1] * softmax(np.where(picked, scores, -np.inf))
        + shares[2] * softmax(np.where(np.arange(n) > n - 6, scores, -np.inf))
    )


def test_native_sparse_attention_is_the_sum_of_its_three_branches():
    mechanism = NativeSparse(size=4, picks=3, window=5)
    q, k, v, extra = inputs(mechanism, 90)
    for keep, segment in packings(90, 4):
        keep, segment = np.asarray(keep, bool), np.asarray(segment, np.int32)
        y = causal(mechanism, q, k, v, keep=keep, segment=segment, **extra)
        np.testing.assert_allclose(y, pairs(nsa, q, k, v, extra, keep, segment), atol=1e-10)


def test_picking_all_blocks_alone_is_softmax_attention_in_native_sparse_attention_too():
    q, k, v, _ = inputs(Softmax(), 50)
    gates = np.tile(np.array([-1e4, 1e4, -1e4]), (50, 1))
    y = causal(NativeSparse(size=8, picks=7, window=3), q, k, v, gates=gates)
    np.testing.assert_allclose(y, causal(Softmax(), q, k, v), atol=1e-12)


@pytest.mark.parametrize("one", [Delta(), GatedDelta(), Kda()], ids=["delta", "gated-delta", "kda"])
def test_strengths_up_to_two_are_twice_the_sigmoid(one):
    both = type(one)(negative_eigenvalues=True)
    q, k, v, extra = inputs(one, 40)
    half = {"beta": np.log(sigmoid(extra["beta"]) / 2 / (1 - sigmoid(extra["beta"]) / 2))}  # logit of half the strength
    np.testing.assert_allclose(causal(both, q, k, v, **extra | half), causal(one, q, k, v, **extra), atol=1e-12)


def test_a_strength_of_two_reflects_the_state_so_that_it_counts_modulo_two():
    # The state starts with one value, and each 1 among the bits reflects it. The output is the parity of the bits.
    mechanism = Delta(negative_eigenvalues=True, scale_queries=False, epsilon=0.0)
    bits = np.random.default_rng(0).integers(0, 2, 100)
    key = np.tile(np.eye(K)[:1], (101, 1))
    v = np.zeros((101, V))
    v[0] = 1
    beta = np.append(0.0, np.where(bits, 1e4, -1e4))  # β is 1, and then 2 or 0
    y = causal(mechanism, key, key, v, beta=beta)
    np.testing.assert_allclose(y[:, 0], np.append(1, (-1.0) ** np.cumsum(bits)), atol=1e-12)


@pytest.mark.parametrize(("scale_queries", "divisor"), [(False, 1), (True, math.sqrt(K))])
def test_slots_as_sums_over_all_earlier_tokens(scale_queries, divisor):
    """Token s is in slot m with the share (1 − a_sm) a_{s+1,m} … a_tm. Queries are not scaled unless that is asked."""
    T, M = 9, 3
    mechanism = GatedSlots(slots=M, scale_queries=scale_queries)
    q, k, v, extra = inputs(mechanism, T)
    q, k, v, gate = 3 * np.asarray(q), 3 * np.asarray(k), np.asarray(v), np.asarray(extra["gate"])
    silu = lambda x: x / (1 + np.exp(-x))
    gates, expected = (1 + np.exp(-gate)) ** -0.125, []
    for t in range(T):
        shares = np.array([(1 - gates[s]) * np.prod(gates[s + 1 : t + 1], axis=0) for s in range(t + 1)])
        scores = np.einsum("sm,s->m", shares, silu(k[: t + 1]) @ silu(q[t]) / divisor)
        expected.append(np.exp(scores) / np.exp(scores).sum() @ shares.T @ v[: t + 1])
    np.testing.assert_allclose(causal(mechanism, q, k, v, gate=gate), expected, atol=1e-12)


@pytest.mark.parametrize(("scale_queries", "divisor"), [(False, 1), (True, math.sqrt(K))])
def test_hgrn2_as_a_sum_over_pairs_of_tokens(scale_queries, divisor):
    """A token of the past adds its value for each channel by what it wrote and what all tokens after it kept."""
    q, k, v, _ = inputs(Hgrn2(), 13)
    kept = 1 / (1 + np.exp(-np.asarray(k)))
    expected = np.zeros(v.shape)
    for t in range(13):
        read = np.asarray(q[t]) / (1 + np.exp(-np.asarray(q[t]))) / divisor
        for s in range(t + 1):
            expected[t] += np.sum(read * np.prod(kept[s + 1 : t + 1], axis=0) * (1 - kept[s])) * np.asarray(v[s])
    y = causal(Hgrn2(scale_queries=scale_queries), q, k, v)
    np.testing.assert_allclose(y, expected, rtol=1e-10, atol=1e-12)


def test_one_write_per_token_is_the_gated_delta_rule():
    one = DeltaProduct(writes=1, negative_eigenvalues=False)
    q, k, v, extra = inputs(GatedDelta(), 40)
    more = {"beta": extra["beta"][:, None], "more_keys": np.zeros((40, 0, K)), "more_values": np.zeros((40, 0, V))}
    np.testing.assert_allclose(causal(one, q, k, v, **extra | more), causal(GatedDelta(), q, k, v, **extra), atol=1e-12)


def test_equal_gates_for_erasing_and_writing_are_kimi_delta_attention():
    q, k, v, extra = inputs(Kda(), 40)
    beta = extra.pop("beta")
    both = {"erase": np.tile(beta[:, None], (1, K)), "write": np.tile(beta[:, None], (1, V))}
    np.testing.assert_allclose(
        causal(MECHANISMS["gated-delta-2"], q, k, v, **extra, **both),
        causal(Kda(), q, k, v, **extra, beta=beta),
        atol=1e-12,
    )


def test_a_trapezoid_of_the_new_end_alone_without_angles_and_biases_is_mamba_2():
    """λ = 1 writes each token once, with its own step."""
    q, k, v, extra = inputs(MECHANISMS["ssd"], 70)
    rate = extra["rate"] + 1  # above 0
    flat = {
        "decay": np.full(70, np.exp(rate) - 1),
        "trapezoid": np.full(70, 1e3),
        "angle": np.zeros((70, K // 2)),
        "q_bias": np.zeros(K),
        "k_bias": np.zeros(K),
    }
    y = causal(MECHANISMS["mamba3"], q, k, v, dt=extra["dt"], shift=extra["shift"], **flat)
    np.testing.assert_allclose(y, causal(MECHANISMS["ssd"], q, k, v, **extra | {"rate": rate}), atol=1e-12)


def test_a_softplus_decay_of_mamba_3_is_that_of_another_raw_number():
    """The default gives the same rate for ln(1 + e^x) − 1 if x is large, and for 1 − 1 / ln(1 + e^x) if it is small."""
    q, k, v, extra = inputs(Mamba3(), 12)
    raw = np.linspace(-6, 6, 12)
    rate = np.log(1 + np.exp(raw))
    same = np.where(rate > 1, rate - 1, 1 - 1 / rate)
    expected = causal(Mamba3(), q, k, v, **extra | {"decay": same})
    y = causal(Mamba3(softplus_decay=True), q, k, v, **extra | {"decay": raw})
    np.testing.assert_allclose(y, expected, rtol=1e-10, atol=1e-12)
    assert not np.allclose(y, causal(Mamba3(), q, k, v, **extra | {"decay": raw}), rtol=1e-3)


def test_a_channel_without_a_partner_is_not_rotated():
    q, k, v, extra = inputs(MECHANISMS["mamba3"], 9)
    wide = lambda x, by: np.concatenate([x, np.full((*x.shape[:-1], 1), by)], axis=-1)
    more = extra | {"q_bias": wide(extra["q_bias"], 0.0), "k_bias": wide(extra["k_bias"], 0.0)}
    y = causal(MECHANISMS["mamba3"], wide(q, 1.0), wide(k, 1.0), v, **more)
    flat = extra | {"angle": 0 * extra["angle"], "q_bias": 0 * extra["q_bias"], "k_bias": 0 * extra["k_bias"]}
    ones = np.ones((9, K)) * 0.5  # their products equal those of the additional channel
    rest = causal(MECHANISMS["mamba3"], ones, ones, v, **flat)
    np.testing.assert_allclose(y, causal(MECHANISMS["mamba3"], q, k, v, **extra) + rest, atol=1e-12)


def test_open_forget_gates_are_softmax_attention():
    q, k, v, extra = inputs(Forgetting(), 40)
    opened = {"forget": np.full(40, 1e4), "shift": extra["shift"]}
    np.testing.assert_allclose(causal(Forgetting(), q, k, v, **opened), causal(Softmax(), q, k, v), atol=1e-12)


@pytest.mark.parametrize(
    "name",
    [
        "mlstm",
        "forgetting",
        "stick-breaking",
        "rwkv7",
        "mamba",
        "mamba3",
        "hgrn2",
        "gated-delta-2",
        "gsa",
        "mesa",
        "path",
    ],
)
def test_inputs_at_their_ends_keep_numbers_finite(name):
    mechanism = MECHANISMS[name]
    q, k, v, extra = inputs(mechanism, 70, dtype=jnp.float32)
    some = np.arange(70) % 7
    for n in mechanism.tokens:
        at = some.reshape(-1, *[1] * (extra[n].ndim - 1))
        extra[n] = np.where(at == 3, np.float32(1e4), np.where(at == 5, np.float32(-1e4), extra[n]))

    def value(q, k, v, extra):
        return jnp.sum(mechanism.causal(q, k, v, **extra) ** 2)

    for scale in (1, 1e3):
        back = jax.jit(jax.value_and_grad(value, argnums=(0, 1, 2, 3)))(q, np.float32(scale) * k, v, extra)
        assert all(np.isfinite(x).all() for x in jax.tree.leaves(back))


def test_a_denominator_of_large_exponents_does_not_overflow():
    # exp(1200) overflows. With a denominator above one, a common factor of all writes has no effect.
    mechanism = MECHANISMS["mlstm"]
    q, k, v, extra = inputs(mechanism, 40)
    q, k = np.abs(q), np.abs(k)
    large = extra | {"write": extra["write"] + 200}
    larger = extra | {"write": extra["write"] + 1200}
    np.testing.assert_allclose(causal(mechanism, q, k, v, **large), causal(mechanism, q, k, v, **larger), atol=1e-12)


@pytest.mark.parametrize("name", ["gated-delta", "retention", "kda", "mlstm", "mamba", "mamba3"])
def test_both_directions_are_the_sum_of_two_passes(name):
    inner = MECHANISMS[name]
    q, k, v, extra = inputs(inner, 40)
    tokens = {n: extra[n] for n in inner.tokens}
    rest = {n: x for n, x in extra.items() if n not in tokens}
    reverse = lambda x: np.asarray(x)[::-1]
    keep, segment = (np.asarray(x) for x in next(packings(40, 1)))
    segment = np.cumsum(np.diff(segment, prepend=segment[:1]) != 0).astype(np.int32)
    for mask, given in (
        (Full(), {}),
        (KeyPadding(keep) & QueryPadding(keep), {"keep": keep}),
        (Segments(segment, segment), {"segment": segment}),
    ):
        back = {n: reverse(x) for n, x in given.items()}
        forward = causal(inner, q, k, v, **extra, **given)
        backward = causal(inner, *map(reverse, (q, k, v)), **jax.tree.map(reverse, tokens), **rest, **back)
        y = attend(Bidirectional(inner), q, k, v, mask, **extra)
        np.testing.assert_allclose(y, forward + reverse(backward), atol=1e-12)


def test_both_directions_refuse_what_they_cannot_do():
    q, k, v, extra = inputs(GatedDelta(), 6)
    both = Bidirectional()
    with pytest.raises(NotImplementedError, match="as many queries as keys, got 4 and 6"):
        both.attend(q[:4], k, v, **extra)
    broken = np.array([0, 1, 0, 1, 2, 2], np.int32)
    assert np.all(np.isnan(attend(both, q, k, v, Segments(broken, broken), **extra)))
    with pytest.raises(ValueError, match="does not read the past only"):
        Bidirectional(Softmax())
