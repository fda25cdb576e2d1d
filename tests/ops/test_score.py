import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attnlab.ops.layer import l2_normalize
from attnlab.ops.learned_score import LEARNED, Scores, initial
from attnlab.ops.score import PLAIN, SCORES, cosine, dot, location
from attnlab.ops.softmax import masked_softmax

pytestmark = pytest.mark.usefixtures("x64")
K = 3
leaky = lambda x: x if x > 0 else 0.2 * x
# The equations for one query and one key at position j.
PAIRS = {
    "dot": lambda q, k, j: q @ k,
    "scaled_dot": lambda q, k, j: q @ k / np.sqrt(len(q)),
    "general": lambda q, k, j, w: q @ w @ k,
    "additive": lambda q, k, j, w_q, w_k, w: w @ np.tanh(w_q.T @ q + w_k.T @ k),
    "concat": lambda q, k, j, w, u: u @ np.tanh(np.concatenate([w[0], w[1]]).T @ np.concatenate([q, k])),
    "location": lambda q, k, j, w: w[:, j] @ q,
    "gat": lambda q, k, j, a: leaky(np.concatenate([a[0], a[1]]) @ np.concatenate([q, k])),
    "cosine": lambda q, k, j, log_scale: np.exp(log_scale) * (q @ k) / np.linalg.norm(q) / np.linalg.norm(k),
}


def draw(name, T=4, S=5):
    rng = np.random.default_rng(0)
    table = initial(SCORES[name], 7, jax.random.key(0), K)
    learned = {n: jnp.asarray(rng.standard_normal(x.shape)) for n, x in table.items()}
    return jnp.asarray(rng.standard_normal((T, K))), jnp.asarray(rng.standard_normal((S, K))), learned


@pytest.mark.parametrize("name", SCORES)
def test_every_score_equals_its_equation_for_every_pair(name):
    q, k, learned = draw(name)
    held = {n: np.asarray(x) for n, x in learned.items()}
    expected = [[PAIRS[name](a, b, j, **held) for j, b in enumerate(np.asarray(k))] for a in np.asarray(q)]
    np.testing.assert_allclose(SCORES[name](q, k, **learned), expected, atol=1e-12)


def test_scores_equal_the_functions_of_pytorch():
    torch = pytest.importorskip("torch")
    F = torch.nn.functional
    told = lambda x: torch.tensor(np.asarray(x))
    pairs = lambda q, k: (told(q)[:, None].expand(4, 5, K).contiguous(), told(k)[None].expand(4, 5, K).contiguous())
    q, k, learned = draw("cosine")
    expected = F.cosine_similarity(*pairs(q, k), dim=2).numpy() * math.exp(float(learned["log_scale"]))
    np.testing.assert_allclose(SCORES["cosine"](q, k, **learned), expected, atol=1e-12)
    q, k, learned = draw("general")
    expected = F.bilinear(*pairs(q, k), told(learned["w"])[None])[..., 0].numpy()
    np.testing.assert_allclose(SCORES["general"](q, k, **learned), expected, atol=1e-12)
    q, k, learned = draw("gat")
    joined = torch.cat(pairs(q, k), dim=2) @ told(learned["a"]).reshape(-1)
    np.testing.assert_allclose(SCORES["gat"](q, k, **learned), F.leaky_relu(joined, 0.2).numpy(), atol=1e-12)
    # The weights with which PyTorch's attention averages values: the values are the identity.
    shares = F.scaled_dot_product_attention(told(q), told(k), torch.eye(5).double())
    found = masked_softmax(SCORES["scaled_dot"](q, k), jnp.ones((4, 5), bool))
    np.testing.assert_allclose(found, shares.numpy(), atol=1e-12)


@pytest.mark.parametrize("name", SCORES)
def test_scores_use_positions_of_keys_and_add_a_bias(name):
    q, k, learned = draw(name)
    j = jnp.array([4, 0, 6, 2, 1], jnp.int32)
    bias = jax.tree_util.Partial(lambda q, i, j: (i[:, None] - j[None, :]).astype(q.dtype))
    found = Scores(SCORES[name], learned, bias)(q, k, jnp.arange(4, dtype=jnp.int32), j)
    held, places = {n: np.asarray(x) for n, x in learned.items()}, np.asarray(j)
    pair = lambda t, n: PAIRS[name](np.asarray(q)[t], np.asarray(k)[n], places[n], **held) + t - places[n]
    expected = [[pair(t, n) for n in range(5)] for t in range(4)]
    np.testing.assert_allclose(found, expected, atol=1e-12)


@pytest.mark.parametrize("name", [score.__name__ for score in PLAIN])
def test_a_score_that_is_a_product_of_other_queries_and_keys_is_that_product(name):
    q, k, learned = draw(name)
    turned, keys, product = Scores(SCORES[name], learned).plain(q, k)
    assert product.product
    np.testing.assert_allclose(dot(turned, keys), SCORES[name](q, k, **learned), atol=1e-12)


@pytest.mark.parametrize("name", SCORES)
def test_half_precision_scores_are_computed_in_float32(name):
    q, k, learned = draw(name)
    scores = SCORES[name](*(x.astype(jnp.bfloat16) for x in (q, k)), **learned)
    assert scores.dtype == jnp.float32


def test_the_published_worked_example_of_sequence_to_sequence_attention():
    state = jnp.array([[10.0, 5, 10]])
    encoded = jnp.array([[0.0, 1, 1], [5, 0, 1], [1, 1, 0], [0, 5, 1]])
    scores = dot(state, encoded)
    np.testing.assert_array_equal(scores, [[15, 60, 15, 35]])
    weights = masked_softmax(scores, jnp.ones((1, 4), bool))
    np.testing.assert_allclose(weights, [[0, 1, 0, 0]], atol=5e-10)
    np.testing.assert_allclose(weights @ encoded, [[5, 0, 1]], atol=5e-9)


def test_general_starts_as_the_scaled_dot_product():
    q, k, _ = draw("general")
    start = initial(SCORES["general"], 7, jax.random.key(0), K)
    np.testing.assert_allclose(SCORES["general"](q, k, **start), SCORES["scaled_dot"](q, k), atol=1e-7)


def test_location_refuses_more_keys_than_it_learned_positions():
    q, k, learned = draw("location", S=8)
    with pytest.raises(ValueError, match=r"location: w has columns for [0-9]+ positions, got 8 keys"):
        location(q, k, **learned)


def test_a_key_beyond_the_learned_positions_is_nan_and_affects_no_other():
    q, k, learned = draw("location")
    j = jnp.array([0, 1, 2, 3, 9], jnp.int32)

    def total(q):
        scores = Scores(location, learned)(q, k, j[:4], j)
        return jnp.where((j < 7)[None, :], scores, 0).sum(), scores

    (_, scores), gradient = jax.value_and_grad(total, has_aux=True)(q)
    np.testing.assert_array_equal(np.isnan(scores).any(axis=0), [False] * 4 + [True])
    assert np.isfinite(gradient).all()


def test_cosines_of_zero_and_of_faint_vectors_have_finite_gradients():
    for scale in (0.0, 1e-30, 1e4):
        x = jnp.full((1, 3), scale, jnp.float32)
        assert np.isfinite(l2_normalize(x)).all()
        assert np.isfinite(jax.jacrev(l2_normalize)(x)).all()
    y, back = jax.vjp(lambda log_scale: cosine(jnp.ones((1, 2)), jnp.ones((1, 2)), log_scale), jnp.asarray(1e4))
    np.testing.assert_allclose(y, 100.0)
    assert np.isfinite(back(jnp.ones((1, 1)))[0])


def test_hidden_vectors_are_not_stored_for_all_pairs():
    T, S, H = 256, 256, 64
    shapes = [jax.ShapeDtypeStruct(s, jnp.float32) for s in ((T, H), (S, H), (H, H), (H, H), (H,))]
    run = jax.grad(lambda *x: SCORES["additive"](*x).sum(), range(5))
    held = jax.jit(run).lower(*shapes).compile().memory_analysis().temp_size_in_bytes
    assert held < 4 * T * S * H


def test_every_score_with_parameters_is_registered():
    assert set(LEARNED) <= set(SCORES.values())
