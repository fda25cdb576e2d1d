import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attnlab.ops import edges
from attnlab.ops.edges import EdgeIndex
from attnlab.ops.softmax import masked_softmax

# Query 1 has no edge, and key 3 is in none. The last two edges are padding.
T, S = 4, 5
ENDS = EdgeIndex(np.array([0, 0, 2, 2, 2, 3, 4, 4]), np.array([0, 4, 0, 1, 2, 2, 5, 5]), T, S)
ALLOWED = np.zeros((T, S), bool)
ALLOWED[ENDS.t[:6], ENDS.s[:6]] = True
RNG = np.random.default_rng(0)


def at_edges(table):
    """Returns the values of a dense array at the edges, with zeros for padding."""
    return np.concatenate([np.asarray(table)[ENDS.t[:6], ENDS.s[:6]], np.zeros(2, np.float32)])


def test_softmax_along_edges_equals_softmax_over_rows():
    table = RNG.standard_normal((T, S)).astype(np.float32) * 3
    weights = edges.softmax(jnp.asarray(at_edges(table)), ENDS)
    np.testing.assert_allclose(weights, at_edges(masked_softmax(jnp.asarray(table), jnp.asarray(ALLOWED))), atol=1e-7)
    np.testing.assert_allclose(edges.sum_per_query(weights, ENDS), [1, 0, 1, 1], atol=1e-6)


def test_softmax_along_edges_ignores_padding_and_does_not_overflow():
    scores = jnp.asarray(np.array([1000, 1000, -np.inf, 2, 2, -1000, np.nan, np.inf], np.float32))
    weights, pull = jax.vjp(lambda x: edges.softmax(x, ENDS), scores)
    np.testing.assert_array_equal(weights, np.array([0.5, 0.5, 0, 0.5, 0.5, 1, 0, 0], np.float32))
    (gradient,) = pull(jnp.arange(8, dtype=jnp.float32))
    np.testing.assert_allclose(gradient, [-0.25, 0.25, 0, -0.25, 0.25, 0, 0, 0], atol=1e-7)


def test_weighted_sums_equal_the_product_with_the_dense_matrix():
    table, v = RNG.standard_normal((T, S)).astype(np.float32), RNG.standard_normal((S, 3)).astype(np.float32)
    weights = jnp.asarray(at_edges(table))
    expected = np.where(ALLOWED, table, 0) @ v
    np.testing.assert_allclose(edges.sum_values(weights, jnp.asarray(v), ENDS), expected, atol=1e-6)
    half = edges.sum_values(weights, jnp.asarray(v, jnp.bfloat16), ENDS)
    assert half.dtype == jnp.bfloat16
    np.testing.assert_allclose(half.astype(jnp.float32), expected, atol=0.05)


def test_unreachable_nodes_have_no_effect():
    v = RNG.standard_normal((S, 3)).astype(np.float32)
    v[3] = np.nan
    y, pull = jax.vjp(lambda v: edges.sum_values(jnp.ones(8), v, ENDS), jnp.asarray(v))
    assert np.isfinite(y).all()
    (gradient,) = pull(jnp.ones((T, 3)))
    np.testing.assert_array_equal(gradient[:, 0], [2, 1, 2, 0, 1])


def test_pair_functions_at_edges_equal_those_of_all_pairs():
    q, k = RNG.standard_normal((T, 2)).astype(np.float32), RNG.standard_normal((S, 2)).astype(np.float32)
    function = lambda q, k, i, j: q @ k.T + (10 * i)[:, None].astype(q.dtype) + j[None, :].astype(q.dtype)
    i, j = np.arange(T, dtype=np.int32), np.arange(S, dtype=np.int32)
    found = edges.edge_scores(function, jnp.asarray(q), jnp.asarray(k), ENDS, i, j)
    expected = q @ k.T + (10 * i)[:, None] + j[None, :]
    np.testing.assert_allclose(found[:6], expected[ENDS.t[:6], ENDS.s[:6]], rtol=1e-6)


def test_trailing_head_axes_equal_single_heads():
    weights, v = RNG.standard_normal((8, 2)).astype(np.float32), RNG.standard_normal((S, 2, 3)).astype(np.float32)
    found = edges.sum_values(jnp.asarray(weights), jnp.asarray(v), ENDS)
    for n in range(2):
        np.testing.assert_allclose(
            found[:, n], edges.sum_values(jnp.asarray(weights[:, n]), jnp.asarray(v[:, n]), ENDS)
        )


def test_symmetric_weights_are_those_of_kipf_and_welling():
    # A path of three nodes with self-loops: the degrees are 2, 3, 2.
    ends = EdgeIndex(np.array([0, 0, 1, 1, 1, 2, 2, 3]), np.array([0, 1, 0, 1, 2, 1, 2, 3]), 3, 3)
    a, b = 1 / 2, 1 / np.sqrt(6)
    np.testing.assert_allclose(edges.symmetric_normalization(ends), [a, b, b, 1 / 3, b, b, a, 0], atol=1e-7)


@pytest.mark.parametrize("N", [200, 400])
def test_memory_grows_with_the_number_of_edges(N):
    q = np.arange(N).repeat(3)
    ends = EdgeIndex(q, (q * 7 + np.tile(np.arange(3), N)) % N, N, N)
    K = 4
    x = jnp.zeros((N, K))

    def value(x):
        scores = edges.edge_scores(lambda q, k, i, j: q @ k.T, x, x, ends, np.arange(N), np.arange(N))
        return edges.sum_values(edges.softmax(scores, ends), x, ends).sum()

    assert largest(jax.make_jaxpr(jax.value_and_grad(value))(x).jaxpr) <= 3 * N * K


def largest(jaxpr):
    """Returns the size of the largest array in a program, including inner programs."""
    inner = [sub for eqn in jaxpr.eqns for sub in inside(eqn.params)]
    own = [v.aval.size for eqn in jaxpr.eqns for v in eqn.outvars if hasattr(v.aval, "size")]
    return max([*own, *map(largest, inner)], default=0)


def inside(params):
    """Yields the programs among the parameters of an equation."""
    for value in jax.tree.leaves(list(params.values()), is_leaf=lambda x: hasattr(x, "eqns") or hasattr(x, "jaxpr")):
        if hasattr(value, "eqns") or hasattr(value, "jaxpr"):
            yield getattr(value, "jaxpr", value)
