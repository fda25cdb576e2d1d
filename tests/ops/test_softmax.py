import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.test_util import check_grads

from attnlab.ops.score import dot, scaled_dot
from attnlab.ops.softmax import masked_softmax

pytestmark = pytest.mark.usefixtures("x64")

X = [[1, 0, 1, 0], [0, 2, 0, 2], [1, 1, 1, 1]]
W_K = [[0, 0, 1], [1, 1, 0], [0, 1, 0], [1, 1, 0]]
W_Q = [[1, 0, 1], [1, 0, 0], [0, 0, 1], [0, 1, 1]]
W_V = [[0, 2, 0], [0, 3, 0], [1, 0, 3], [1, 1, 0]]


def worked():
    x, w_k, w_q, w_v = (jnp.array(a, jnp.float64) for a in (X, W_K, W_Q, W_V))
    return x @ w_q, x @ w_k, x @ w_v, jnp.ones((3, 3), bool)


def test_the_published_worked_example_of_self_attention():
    q, k, v, allowed = worked()
    np.testing.assert_array_equal(dot(q, k), [[2, 4, 4], [4, 16, 12], [4, 12, 10]])
    weights = masked_softmax(dot(q, k), allowed)
    np.testing.assert_allclose(
        weights,
        [
            [0.06337894, 0.46831053, 0.46831053],
            [0.00000603, 0.98200786, 0.01798610],
            [0.00029539, 0.88053690, 0.11916771],
        ],
        atol=5e-9,
    )
    y = [
        [1.93662106, 6.68310531, 1.59506841],
        [1.99999397, 7.96399160, 0.05397641],
        [1.99970461, 7.75989225, 0.35838929],
    ]
    np.testing.assert_allclose(weights @ v, y, atol=5e-9)


def test_the_published_worked_example_scaled():
    q, k, v, allowed = worked()
    y = [
        [1.86387420, 6.31937101, 1.70418870],
        [1.99910955, 7.81412350, 0.27347206],
        [1.99255511, 7.47963559, 0.73587726],
    ]
    np.testing.assert_allclose(masked_softmax(scaled_dot(q, k), allowed) @ v, y, atol=5e-9)


def test_shifting_a_row_of_scores_changes_nothing():
    scores = jax.random.normal(jax.random.key(0), (4, 6))
    allowed = jax.random.bernoulli(jax.random.key(1), 0.7, (4, 6))
    np.testing.assert_allclose(masked_softmax(scores + 1000.0, allowed), masked_softmax(scores, allowed), atol=1e-12)


def test_masked_scores_have_no_weight_whatever_their_value():
    allowed = jnp.array([[True, False, True]])
    for bad in (np.nan, np.inf, -np.inf, 1e300):
        scores = jnp.array([[0.0, bad, 0.0]])
        np.testing.assert_array_equal(masked_softmax(scores, allowed), [[0.5, 0, 0.5]])
        gradient = jax.grad(lambda s: masked_softmax(s, allowed)[0, 0])(scores)
        np.testing.assert_allclose(gradient, [[0.25, 0, -0.25]])


def test_a_fully_masked_row_is_zero_with_zero_gradient():
    allowed = jnp.zeros((2, 3), bool)
    scores = jnp.array([[1.0, jnp.nan, jnp.inf], [0, 0, 0]])
    weights, back = jax.vjp(lambda s: masked_softmax(s, allowed), scores)
    assert not np.any(weights)
    assert not np.any(back(jnp.ones((2, 3)))[0])


def test_its_gradients_agree_with_finite_differences_twice():
    allowed = jnp.array([[True, True, False, True]] * 2)
    check_grads(
        lambda s: masked_softmax(jnp.asarray(s), allowed),
        (jax.random.normal(jax.random.key(0), (2, 4)),),
        order=2,
    )


def test_scaling_makes_the_variance_of_a_score_one():
    q, k = (jax.random.normal(jax.random.key(n), (400, 64)) for n in (0, 1))
    assert float(jnp.var(dot(q, k))) == pytest.approx(64, rel=0.05)
    assert float(jnp.var(scaled_dot(q, k))) == pytest.approx(1, rel=0.05)


def test_half_precision_scores_are_summed_in_float32():
    scores = jnp.zeros((1, 4096), jnp.bfloat16)
    weights = masked_softmax(scores, jnp.ones((1, 4096), bool))
    assert weights.dtype == jnp.float32
    np.testing.assert_allclose(weights.sum(), 1, rtol=1e-6)


def test_the_gradient_by_the_query_is_the_covariance_of_values_and_keys():
    q, k, v = (jax.random.normal(jax.random.key(n), shape) for n, shape in enumerate([(1, 4), (5, 4), (5, 3)]))
    mixed = lambda q: (masked_softmax(scaled_dot(q, k), jnp.ones((1, 5), bool)) @ v)[0]
    share = masked_softmax(scaled_dot(q, k), jnp.ones((1, 5), bool))[0]
    expected = sum(share[n] * jnp.outer(v[n], k[n] - share @ k) for n in range(5)) / jnp.sqrt(4.0)
    np.testing.assert_allclose(jax.jit(jax.jacrev(mixed))(q)[:, 0], expected, atol=1e-12)
