import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attnlab.mechanisms import Softmax, Synthesizer
from attnlab.ops.mask import Causal, Full, Window
from tests.mechanisms import test_contract_absence, test_contract_gradients
from tests.mechanisms.contract import SMALL, K, V, attend, causal, extend, inputs, near, weights

pytestmark = pytest.mark.usefixtures("x64")
DENSE, RANDOM = Synthesizer(length=12), Synthesizer(length=12, fixed=True)
both = pytest.mark.parametrize("mechanism", [DENSE, RANDOM], ids=["dense", "random"])


def written_out(mechanism, q, v, learned, allowed, i, j):
    """Computes the formula pair by pair."""
    q, v, learned = np.asarray(q), np.asarray(v), {n: np.asarray(x) for n, x in learned.items()}
    y = np.zeros((len(q), v.shape[1]))
    for t in range(len(q)):
        if mechanism.fixed:
            row = learned["table"][i[t]]
        else:
            hidden = [max(0, q[t] @ learned["w"][:, n] + learned["b"][n]) for n in range(q.shape[1])]
            row = hidden @ learned["u"] + learned["c"]
        seen = [s for s in range(len(v)) if allowed[t, s]]
        share = np.exp([row[j[s]] for s in seen])
        y[t] = sum(w / share.sum() * v[s] for w, s in zip(share, seen, strict=True))
    return y


def given(mechanism, T, S=None):
    """Returns inputs with biases that are not zero."""
    q, k, v, learned = inputs(mechanism, T, S)
    return q, k, v, learned | {n: x + jnp.linspace(0, 2, x.shape[0]) for n, x in learned.items() if n in "bc"}


@both
@pytest.mark.parametrize("mask", [Full(), Causal(), Window(2, 2)], ids=str)
def test_it_equals_the_formula_under_any_mask(mechanism, mask):
    q, k, v, learned = given(mechanism, 6)
    at = np.arange(6, dtype=np.int32)
    expected = written_out(mechanism, q, v, learned, np.asarray(mask(at, at)), at, at)
    near(attend(mechanism, q, k, v, mask, **learned), expected)
    i, j = np.array([2, 7, 11]), np.array([9, 0, 3, 2, 1])
    q, k, v = q[:3], k[:5], v[:5]
    expected = written_out(mechanism, q, v, learned, np.asarray(mask(i, j)), i, j)
    rows = np.asarray(mask(i, j)).any(axis=1)
    y = attend(mechanism, q, k, v, mask, i=jnp.asarray(i), j=jnp.asarray(j), **learned)
    near(y[rows], expected[rows])


def test_the_weights_do_not_depend_on_keys():
    q, k, _, learned = given(DENSE, 6)
    near(weights(DENSE, q, k * 0, **learned), weights(DENSE, q, k, **learned))
    q, k, _, learned = given(RANDOM, 6)
    near(weights(RANDOM, q * 0, k * 0, **learned), weights(RANDOM, q, k, **learned))
    assert np.ptp(weights(RANDOM, q, k, **learned), axis=0).min() > 0.01


@both
def test_a_decoded_token_uses_the_column_of_its_position(mechanism):
    q, k, v, learned = given(mechanism, 8)
    state, rows = mechanism.start(12, K, V), []
    for t in range(8):
        y, state = extend(mechanism, state, q[t : t + 1], k[t : t + 1], v[t : t + 1], **learned)
        rows.append(y[0])
    at = np.arange(8, dtype=np.int32)
    near(jnp.stack(rows), written_out(mechanism, q, v, learned, np.tri(8, dtype=bool), at, at))


@both
def test_it_has_a_fixed_length_and_can_be_resized(mechanism):
    q, k, v, learned = given(mechanism, 13)
    with pytest.raises(ValueError, match="supports positions 0 … 11, got 0 … 12"):
        mechanism.attend(q, k, v, **learned)
    with pytest.raises(ValueError, match=r"supports 12 tokens, got 13; use with_length\(13\)"):
        causal(mechanism, q, k, v, **learned)
    with pytest.raises(ValueError, match="supports 12 tokens, got 13"):
        mechanism.start(13, K, V)
    j = jnp.array([0, 1, 12])
    with pytest.raises(ValueError, match="supports positions 0 … 11, got 0 … 12"):
        mechanism.attend(q[:3], k[:3], v[:3], j=j, **learned)
    assert np.isnan(attend(mechanism, q[:3], k[:3], v[:3], j=j, **learned)).all()
    # Masked tokens may have any position.
    near(
        attend(mechanism, q[:3], k[:3], v[:3], Window(3, 3), j=j, **learned),
        attend(mechanism, q[:3], k[:2], v[:2], Window(3, 3), i=jnp.arange(3), j=j[:2], **learned),
    )
    state = mechanism.start(12, K, V)
    y, _ = extend(mechanism, state, q[:2], k[:2], v[:2], i=jnp.array([3, 12]), **learned)
    assert np.isfinite(y[0]).all()
    assert np.isnan(y[1]).all()
    with pytest.raises(ValueError, match="supports positions 0 … 11, got 3 … 12"):
        mechanism.extend(state, q[:2], k[:2], v[:2], i=jnp.array([3, 12]), **learned)
    longer = mechanism.with_length(13)
    assert longer == Synthesizer(length=13, fixed=mechanism.fixed)
    assert np.isfinite(causal(longer, q, k, v, **given(longer, 13)[3])).all()


def test_a_query_before_the_first_position_has_no_row_in_the_table():
    q, k, v, learned = given(RANDOM, 3, 2)
    with pytest.raises(ValueError, match="got -1 … 1"):
        RANDOM.attend(q, k, v, **learned)
    assert np.isnan(attend(RANDOM, q, k, v, i=jnp.array([-1, 0, 1]), **learned)[0]).all()


@both
def test_initial_scores_have_unit_variance(mechanism):
    big = mechanism.with_length(256)
    q = jax.random.normal(jax.random.key(1), (256, 64))
    learned = big.initial(jax.random.key(0), 64, 64)
    map_ = weights(big, q, q, **{n: x.astype(q.dtype) for n, x in learned.items()})
    assert float(jnp.var(jnp.log(map_), axis=1).mean()) == pytest.approx(1, rel=0.2)


def test_a_bias_is_added_to_the_scores():
    q, k, _, learned = given(DENSE, 5)
    add = lambda q, i, j: -jnp.abs(i[:, None] - j[None, :]).astype(q.dtype) / 2
    plain = weights(DENSE, q, k, **learned)
    biased = jax.jit(lambda: DENSE.attend(q, k, jnp.eye(5), bias=add, **learned))()
    expected = plain * jnp.exp(add(q, jnp.arange(5), jnp.arange(5)))
    near(biased, expected / expected.sum(axis=1, keepdims=True))


@pytest.mark.parametrize(
    "promise",
    [
        test_contract_absence.test_packed_sequences_are_independent,
        test_contract_gradients.test_gradients_agree_with_finite_differences,
    ],
    ids=lambda promise: promise.__name__,
)
def test_the_random_variant_passes_the_contract(monkeypatch, promise):
    monkeypatch.setitem(SMALL, "synthesizer", Synthesizer(length=16, fixed=True))
    promise(
        "synthesizer",
        **({"block": 4} if promise is test_contract_absence.test_packed_sequences_are_independent else {}),
    )


def test_its_bytes_count_the_parameters_that_are_read():
    T, S = 5, 7
    moved = Softmax().cost(T, S, K, V).bytes
    for mechanism in (DENSE, RANDOM):
        shapes = mechanism.with_length(S).initial(jax.random.key(0), K, V).values()
        read = sum(x.size for x in shapes) if mechanism is DENSE else T * S
        assert mechanism.cost(T, S, K, V).bytes == moved + 4 * read


def test_a_length_below_one_is_refused_by_name():
    with pytest.raises(ValueError, match="length=0 must be at least 1"):
        Synthesizer(length=0)
