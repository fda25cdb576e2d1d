from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attnlab.mechanisms import Pairwise, Sigmoid, Softmax, Traits
from attnlab.modules.graph import (
    GraphAttention,
    GraphConvolution,
    Sparse,
    add_self_loops,
    dropout_entries,
    sparse_matmul,
)
from attnlab.ops.edges import EdgeIndex
from attnlab.ops.score import gat


@dataclass(frozen=True)
class Given(Pairwise):
    """A mechanism whose weights are one for all nodes."""

    traits = Traits(edges=True)

    def weights(self, q, k, allowed, *, i, j, bias=None):
        """Returns ones where a pair is allowed."""
        return allowed.astype(q.dtype)

    def edge_weights(self, q, k, ends, *, i, j, bias=None):
        """Returns ones for valid edges."""
        return jnp.asarray(ends.valid).astype(q.dtype)


# Three papers in a path, each citing its neighbours, and a fourth one without citations.
LINKS = np.array([[0, 1], [1, 0], [1, 2], [2, 1]], np.int32)
N = 4
X = np.random.default_rng(0).standard_normal((N, 5)).astype(np.float32)


def test_every_node_has_a_self_loop():
    ends = add_self_loops(LINKS, N)
    table = np.zeros((N, N), int)
    np.add.at(table, (ends.t, ends.s), 1)
    np.testing.assert_array_equal(table, [[1, 1, 0, 0], [1, 1, 1, 0], [0, 1, 1, 0], [0, 0, 0, 1]])


def test_a_given_self_loop_counts_once():
    looped = np.concatenate([LINKS, np.array([[1, 1], [3, 3]], np.int32)])
    x, convolution = jnp.asarray(X), GraphConvolution(jax.random.key(0), 5, 3, 0.0)
    attention = GraphAttention(jax.random.key(0), 5, 3, 2, Softmax(score=gat), 0.0)
    # D^−½ (A + 1) D^−½ X W of the path graph, with degrees 2, 3, 2 and 1.
    table = np.array([[1, 1, 0, 0], [1, 1, 1, 0], [0, 1, 1, 0], [0, 0, 0, 1]]) / np.sqrt(np.outer(*[[2, 3, 2, 1]] * 2))
    expected = table @ X @ np.asarray(convolution.w[...])
    known, counted = add_self_loops(LINKS, N), add_self_loops(looped, N)
    for layer, right in ((convolution, expected), (attention, jax.jit(lambda: attention(x, known))())):
        outputs = jax.jit(lambda links, layer=layer: (layer(x, counted), layer(x, add_self_loops(links, N))))(looped)
        for found in outputs:
            np.testing.assert_allclose(found, right, rtol=1e-5, atol=1e-6)
    # The self-loops among the links have weight zero.
    np.testing.assert_array_equal(jax.jit(lambda: attention.weights(x, counted))()[4:6], 0)


def test_a_sparse_matrix_equals_the_dense_matrix():
    rows, columns = np.nonzero(X > 0)
    sparse = Sparse(jnp.asarray(X[rows, columns]), EdgeIndex(rows, columns, N, 5))
    w = np.ones((5, 2), np.float32)
    np.testing.assert_allclose(sparse_matmul(sparse, jnp.asarray(w)), np.maximum(X, 0) @ w, rtol=1e-5)
    some = dropout_entries(sparse, 0.5, jax.random.key(0)).values
    assert set(np.unique(np.round(some / sparse.values, 3))) == {0, 2}
    assert dropout_entries(sparse, 0.5, None).values is sparse.values


def test_attention_is_the_equations_of_the_paper_and_an_isolated_node_keeps_itself():
    layer = GraphAttention(jax.random.key(0), 5, 3, 2, Softmax(score=gat), 0.6)
    w, a = np.asarray(layer.w[...]).reshape(5, 2, 3), np.asarray(layer.learned["a"][...])
    expected = np.zeros((N, 2, 3), np.float32)
    for head in range(2):
        h = X @ w[:, head]
        for i in range(N):
            near = [j for j in range(N) if i == j or [i, j] in LINKS.tolist()]
            scores = np.array([h[i] @ a[head, 0] + h[j] @ a[head, 1] for j in near])
            shares = np.exp(np.where(scores > 0, scores, 0.2 * scores))
            expected[i, head] = shares / shares.sum() @ h[near]
    y = layer(jnp.asarray(X), add_self_loops(LINKS, N))
    np.testing.assert_allclose(y, expected.reshape(N, 6), rtol=1e-5)
    np.testing.assert_allclose(y[3], X[3] @ w.reshape(5, 6), rtol=1e-5)
    weights = layer.weights(jnp.asarray(X), add_self_loops(LINKS, N))
    assert weights.shape == (8, 2)
    np.testing.assert_allclose(weights[-1], 1, rtol=1e-6)


def test_dropout_of_inputs_and_weights_keeps_the_mean():
    layer = GraphAttention(jax.random.key(0), 5, 3, 2, Given(), 0.5)
    ends, x = add_self_loops(LINKS, N), jnp.ones((N, 5))
    drawn = jax.jit(jax.vmap(lambda key: layer(x, ends, key)))(jax.random.split(jax.random.key(1), 4000))
    plain = layer(x, ends)
    # The weights are fixed, so the output is linear in what is dropped. It is unbiased, and differs between draws.
    assert float(jnp.std(drawn, axis=0).min()) > 0.1 * float(jnp.abs(plain).max())
    error = jnp.std(drawn, axis=0) / len(drawn) ** 0.5
    assert (jnp.abs(drawn.mean(axis=0) - plain) < 5 * error).all()


def test_convolution_is_the_product_of_matrices():
    layer = GraphConvolution(jax.random.key(0), 5, 3, 0.5)
    adjacency = np.eye(N)
    adjacency[LINKS[:, 0], LINKS[:, 1]] = 1
    root = np.diag(adjacency.sum(axis=1) ** -0.5)
    expected = root @ adjacency @ root @ X @ np.asarray(layer.w[...])
    np.testing.assert_allclose(layer(jnp.asarray(X), add_self_loops(LINKS, N)), expected, rtol=1e-5, atol=1e-6)


def test_a_mechanism_that_cannot_weigh_edges_is_refused():
    with pytest.raises(ValueError, match=r"model.mechanism=Sigmoid.* cannot be restricted to the edges"):
        GraphAttention(jax.random.key(0), 5, 3, 2, Sigmoid(), 0.0)


@pytest.mark.parametrize("rows", [3, 8])
def test_features_of_another_number_of_nodes_are_refused(rows):
    ends, entries = add_self_loops(LINKS, N), np.zeros(1, np.int32)
    layers = GraphConvolution(jax.random.key(0), 5, 3, 0.0), GraphAttention(jax.random.key(0), 5, 3, 2, Softmax(), 0.0)
    for layer in layers:
        for x in (jnp.ones((rows, 5)), Sparse(jnp.ones(1), EdgeIndex(entries, entries, rows, 5))):
            with pytest.raises(ValueError, match=f"x has {rows} rows, expected one for each of the 4 nodes"):
                layer(x, ends)


def test_negative_nodes_are_refused_and_nodes_beyond_the_last_are_padding():
    with pytest.raises(ValueError, match="expected nodes of at least 0 in links, got -1"):
        add_self_loops(np.concatenate([LINKS, [[0, -1]]]), N)
    padded, layer = np.concatenate([LINKS, [[0, N], [N + 1, 0]]]), GraphConvolution(jax.random.key(0), 5, 3, 0.0)
    outputs = [layer(jnp.asarray(X), add_self_loops(links, N)) for links in (LINKS, padded, LINKS[:0])]
    np.testing.assert_array_equal(outputs[0], outputs[1])
    np.testing.assert_allclose(outputs[2], X @ np.asarray(layer.w[...]), rtol=1e-5)
