import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attnlab.ops.mask import Causal, EdgeList, Edges

ADJACENCY = np.random.default_rng(0).random((7, 5)) < 0.4
ADJACENCY[2], ADJACENCY[:, 3] = False, False
# Includes padding in the query, in the key, and in both.
LISTED = np.concatenate([np.argwhere(ADJACENCY), [[-1, 2], [3, -1], [-1, -1]]]).astype(np.int32)
MASK = EdgeList(LISTED[:, 0], LISTED[:, 1])
PLACES = {
    "all": (np.arange(7), np.arange(5)),
    "some": (np.array([5, 0, 2]), np.array([4, 3, 0])),
    "beyond": (np.array([6, 9, -1]), np.array([-1, 4, 7, 1])),
    "twice": (np.array([1, 1, 6, 1]), np.array([2, 2, 0])),
}
each = pytest.mark.parametrize("name", PLACES)


@each
def test_an_edge_list_equals_its_dense_mask(name):
    i, j = PLACES[name]
    for mask, table in ((MASK, Edges(ADJACENCY)), (~MASK & Causal(), ~Edges(ADJACENCY) & Causal())):
        np.testing.assert_array_equal(*jax.jit(lambda mask=mask, table=table: (mask(i, j), table(i, j)))())


@each
def test_reachable_follows_from_the_edges(name):
    i, j = PLACES[name]
    pairs = np.asarray(Edges(ADJACENCY)(i, j))
    for seen in (MASK.reachable(i, j), jax.jit(lambda mask: mask.reachable(i, j))(MASK)):
        np.testing.assert_array_equal(seen[0], pairs.any(axis=1))
        np.testing.assert_array_equal(seen[1], pairs.any(axis=0))


@each
def test_rows_are_positions_in_a_call(name):
    i, j = PLACES[name]
    if name in ("beyond", "twice"):
        assert MASK.rows(i, j) is None
        return
    for t, s in (MASK.rows(i, j), EdgeList(jnp.asarray(LISTED[:, 0]), jnp.asarray(LISTED[:, 1])).rows(i, j)):
        t, s = np.asarray(t), np.asarray(s)
        assert ((t < len(i)) == (s < len(j))).all()
        pairs = np.zeros((len(i), len(j)), bool)
        pairs[t[t < len(i)], s[t < len(i)]] = True
        np.testing.assert_array_equal(pairs, np.asarray(Edges(ADJACENCY)(i, j)))


def test_a_duplicate_edge_is_refused_by_name():
    with pytest.raises(ValueError, match=r"the edge \(3, 1\) is given twice"):
        EdgeList(np.array([0, 3, -1, 3, -1]), np.array([1, 1, 2, 1, 2]))


def test_an_empty_edge_list():
    mask = EdgeList(np.zeros(0, np.int32), np.zeros(0, np.int32))
    assert not np.asarray(mask(np.arange(3), np.arange(2))).any()
    assert [len(x) for x in mask.rows(np.arange(3), np.arange(2))] == [0, 0]
