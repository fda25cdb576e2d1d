import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attnlab.mechanisms import Nystrom, Softmax
from attnlab.ops.mask import Causal, KeyPadding, QueryPadding
from tests.mechanisms.contract import V, attend, attend_back, inputs, near, weights

pytestmark = pytest.mark.usefixtures("x64")
FEW = Nystrom(landmarks=4)
TARGET = np.random.default_rng(3).normal(size=(12, V))


def softmax(scores):
    share = np.exp(scores)
    return share / share.sum(axis=1, keepdims=True)


def landmarks(x, m):
    """Returns the means of m contiguous groups of rows, whose sizes differ by at most one."""
    runs = [[x[r] for r in range(len(x)) if r * m // len(x) == g] for g in range(m)]
    assert {len(run) for run in runs} <= {len(x) // m, len(x) // m + 1}
    return np.array([np.mean(run, axis=0) for run in runs])


def written_out(q, k, v, m, steps):
    """Computes equations 11, 13 and 14."""
    q, k, v = (np.asarray(x) for x in (q, k, v))
    scale = np.sqrt(q.shape[1])
    middle_q, middle_k = landmarks(q, m), landmarks(k, m)
    a = softmax(middle_q @ middle_k.T / scale)
    z = a.T / (np.abs(a).sum(axis=0).max() * np.abs(a).sum(axis=1).max())
    for _ in range(steps):
        az = a @ z
        z = z @ (13 * np.eye(m) - az @ (15 * np.eye(m) - az @ (7 * np.eye(m) - az))) / 4
    return softmax(q @ middle_k.T / scale) @ z @ softmax(middle_q @ k.T / scale) @ v


@pytest.mark.parametrize(("T", "S"), [(12, 12), (11, 13), (5, 14)])
def test_it_is_equations_13_and_14(T, S):
    q, k, v, _ = inputs(FEW, T, S)
    near(attend(FEW, q, k, v), written_out(q, k, v, 4, 6))


def test_padding_has_no_effect_at_any_position():
    q, k, v, _ = inputs(FEW, 12)
    for kept in ("111111110000", "000011111111", "101101110101", "110000111111"):
        keep = np.array([c == "1" for c in kept])
        garbage = [jnp.where(keep[:, None], x, jnp.nan) for x in (q, k, v)]
        mask = KeyPadding(jnp.asarray(keep)) & QueryPadding(jnp.asarray(keep))
        y, (dq, dk, dv, _) = attend_back(FEW, TARGET, *garbage, {}, mask)
        alone, back = attend_back(FEW, TARGET[keep], q[keep], k[keep], v[keep], {})
        near(y[keep], alone)
        near(y[keep], written_out(q[keep], k[keep], v[keep], 4, 6))
        near((dq[keep], dk[keep], dv[keep]), back[:3])
        assert not any(np.any(x[~keep]) for x in (y, dq, dk, dv))


def test_heads_equal_a_vmap():
    examples = [inputs(FEW, 12, seed=seed)[:3] for seed in range(3)]
    mask = KeyPadding(jnp.arange(12) % 4 > 0)
    lifted = jax.jit(jax.vmap(lambda q, k, v: FEW.attend(q, k, v, mask)))
    loop = jnp.stack([attend(FEW, *example, mask) for example in examples])
    near(lifted(*(jnp.stack(x) for x in zip(*examples, strict=True))), loop)


def test_landmarks_follow_positions_and_not_the_order_of_keys():
    q, k, v, _ = inputs(FEW, 12)
    order = jax.random.permutation(jax.random.key(2), 12)
    near(attend(FEW, q, k[order], v[order], i=jnp.arange(12), j=order), attend(FEW, q, k, v))


@pytest.mark.parametrize(("T", "S"), [(4, 12), (12, 4), (3, 2)])
def test_with_at_most_as_many_tokens_as_landmarks_it_is_softmax(T, S):
    q, k, v, _ = inputs(FEW, T, S)
    near(attend(FEW, q, k, v), attend(Softmax(), q, k, v))
    # The same with padding, so that the arrays are longer than the sequences.
    long_q, long_k, long_v = (jnp.pad(x, ((0, 12 - x.shape[0]), (0, 0)), constant_values=7.0) for x in (q, k, v))
    mask = KeyPadding(jnp.arange(12) < S) & QueryPadding(jnp.arange(12) < T)
    padded, back = attend_back(FEW, TARGET, long_q, long_k, long_v, {}, mask)
    exact, expected = attend_back(Softmax(), TARGET, long_q, long_k, long_v, {}, mask)
    near(padded[:T], attend(Softmax(), q, k, v))
    near((padded, back), (exact, expected))


def test_more_landmarks_are_closer_to_softmax():
    q, k, v, _ = inputs(FEW, 64)
    exact = attend(Softmax(), q, k, v)
    errors = [float(jnp.abs(attend(Nystrom(landmarks=m), q, k, v) - exact).mean()) for m in (2, 8, 32, 64)]
    assert errors == sorted(errors, reverse=True)
    assert errors[-1] < 1e-12


def test_its_map_has_no_more_rank_than_landmarks():
    q, k, _, _ = inputs(FEW, 12)
    assert np.linalg.matrix_rank(weights(FEW, q, k)) <= 4


def test_an_output_depends_on_other_queries():
    assert not FEW.traits.row_independent
    q, k, v, _ = inputs(FEW, 12)
    changed = attend(FEW, q + (np.arange(12) == 7)[:, None], k, v)
    assert np.abs(changed - attend(FEW, q, k, v))[:7].max() > 1e-4


@pytest.mark.parametrize(("T", "K", "scale"), [(67, 4, 1), (4096, 4, 1), (4096, 64, 3)])
def test_the_iteration_is_accurate_in_float32(T, K, scale):
    # Six steps leave the inverse of the smallest singular values damped, so |Z| stays near 20 and rounding errors
    # small.
    keys = jax.random.split(jax.random.key(T + K), 3)
    draw = [jax.random.normal(key, (T, K), jnp.float32) for key in keys]
    q, k, v = draw[0] * scale, draw[1], draw[2][:, :6]
    exact = np.asarray(attend(Nystrom(), *(x.astype(jnp.float64) for x in (q, k, v))))
    assert np.abs(np.asarray(attend(Nystrom(), q, k, v)) - exact).max() <= 2e-6 * np.abs(exact).max()


def test_declared_flops_agree_with_the_compiler():
    T, S, K = 256, 320, 16
    shapes = [jax.ShapeDtypeStruct(s, jnp.float32) for s in ((T, K), (S, K), (S, K))]
    mechanism = Nystrom(landmarks=32)
    counted = attend.lower(mechanism, *shapes).compile().cost_analysis()["flops"]
    assert 0.5 <= mechanism.cost(T, S, K, K).flops / counted <= 2


def test_fields_and_masks_that_cannot_work_are_refused_by_name():
    with pytest.raises(ValueError, match="landmarks=0 must be at least 1"):
        Nystrom(landmarks=0)
    with pytest.raises(ValueError, match="steps=0 must be at least 1"):
        Nystrom(steps=0)
    q, k, v, _ = inputs(FEW, 4)
    with pytest.raises(NotImplementedError, match=r"Nystrom.* does not support Causal"):
        FEW.attend(q, k, v, Causal())
