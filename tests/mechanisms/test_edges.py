"""Checks that attention along a list of edges equals attention with the dense mask, without computing all pairs."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from attnlab.mechanisms import MECHANISMS, Linear, Softmax
from attnlab.modules.position import Rotary
from attnlab.ops.edges import EdgeIndex
from attnlab.ops.feature import Cosformer, Favor, Narrow, Taylor
from attnlab.ops.mask import EdgeList, Edges
from attnlab.ops.score import SCORES
from tests.mechanisms.contract import SMALL as KNOWN
from tests.mechanisms.contract import attend, attend_back, group, inputs, near
from tests.ops.test_edges import largest

pytestmark = pytest.mark.usefixtures("x64")
N, E = 6, 14
EXACT = 1e-12
# One score of each kind, a pattern, a feature map with a scale and one with positions. The others do not differ in what
# is tested here.
SMALL = (
    {name: KNOWN[name] for name in ("softmax", "window", "linear", "performer", "cosformer")}
    | {name: Softmax(score=SCORES[name], length=N) for name in ("gat", "cosine", "additive", "location")}
    | {"unnormalised": Linear(normalise=False), "kernel": Linear(feature=Taylor(), normalise=False)}
)


def listed(adjacency):
    """Returns the edges of a dense mask as a padded list of length E."""
    found = np.full((E, 2), -1, np.int32)
    edges = np.argwhere(adjacency)[:E]
    found[: len(edges)] = edges
    return EdgeList(jnp.asarray(found[:, 0]), jnp.asarray(found[:, 1]))


def table(mask):
    """Returns the dense mask of an edge list."""
    adjacency = np.zeros((N, N), bool)
    query, key = np.asarray(mask.query), np.asarray(mask.key)
    adjacency[query[query >= 0], key[query >= 0]] = True
    return Edges(adjacency)


@group(SMALL)
@settings(max_examples=6)
@given(st.lists(st.booleans(), min_size=N * N, max_size=N * N), st.integers(0, 99))
def test_an_edge_list_equals_its_dense_mask_with_gradients(name, adjacency, seed):
    mechanism, mask = SMALL[name], listed(np.reshape(adjacency, (N, N)))
    q, k, v, extra = inputs(mechanism, N, seed=seed)
    target = np.random.default_rng(seed).standard_normal((N, v.shape[1]))
    near(
        attend_back(mechanism, target, q, k, v, extra, mask=mask),
        attend_back(mechanism, target, q, k, v, extra, mask=table(mask)),
        EXACT,
    )


# Two feature maps wrap another one. The rotary map depends on positions itself, and the narrow one if its inner map
# does.
ORDERED = SMALL | {
    "cosformer": Linear(feature=Cosformer(length=N)),
    "turned": Linear().with_rotary(Rotary()),
    "narrow": Linear(feature=Narrow(Cosformer(length=N), 2)),
    **{name: KNOWN[name] for name in ("strided", "bigbird", "longformer", "taylor", "rebased")},
}


@group(ORDERED)
def test_position_dependent_mechanisms_depend_on_node_numbers(name):
    mechanism, random = ORDERED[name], np.random.default_rng(0)
    q, k, v, extra = inputs(mechanism, N)
    q, k = np.abs(q), np.abs(k)  # so that no feature is zero
    adjacency = random.random((N, N)) < 0.6
    places = np.array([3, 0, 5, 1, 4, 2])
    before = attend(mechanism, q, k, v, Edges(jnp.asarray(adjacency)), **extra)
    moved = [x[places] for x in (q, k, v)]
    after = attend(mechanism, *moved, Edges(jnp.asarray(adjacency[places][:, places])), **extra)
    apart = np.abs(np.asarray(before)[places] - after).max()
    assert (apart > 1e-3) == mechanism.traits.position_dependent
    assert mechanism.traits.position_dependent or apart < EXACT


def test_which_mechanisms_support_edge_lists():
    assert {name for name, mechanism in MECHANISMS.items() if mechanism.traits.edges} >= {
        "softmax",
        "linear",
        "performer",
    }
    # Mechanisms with other pairwise weights are not treated as softmax: they do not follow an edge list, but their
    # results are still correct.
    for name in ("sigmoid", "local-p"):
        mechanism = MECHANISMS[name]
        assert not mechanism.traits.edges
        mask = listed(np.tri(N, k=-1, dtype=bool))
        q, k, v, extra = inputs(mechanism, N)
        near(attend(mechanism, q, k, v, mask, **extra), attend(mechanism, q, k, v, table(mask), **extra), EXACT)


@pytest.mark.parametrize("mechanism", [Softmax(), Linear(), Linear(feature=Favor(m=4))], ids=str)
def test_an_isolated_node_gives_zero_and_unreachable_nodes_have_no_effect(mechanism):
    adjacency = np.zeros((N, N), bool)
    adjacency[[0, 0, 1, 4], [1, 2, 0, 4]] = True
    q, k, v, extra = inputs(mechanism, N)
    clean = attend_back(mechanism, np.ones(v.shape), q, k, v, extra, mask=listed(adjacency))
    q, k, v = q.copy(), k.copy(), v.copy()
    q[[2, 3, 5]], k[[3, 5]], v[[3, 5]] = np.nan, np.nan, np.nan
    spoilt = attend_back(mechanism, np.ones(v.shape), q, k, v, extra, mask=listed(adjacency))
    near(spoilt, clean, EXACT)
    assert not clean[0][[2, 3, 5]].any()
    assert not clean[1][0][[2, 3, 5]].any()


@pytest.mark.parametrize("name", SMALL)
def test_padding_of_an_edge_list_has_no_weight(name):
    mechanism = SMALL[name]
    q, k, _, extra = (jax.tree.map(jnp.asarray, x) for x in inputs(mechanism, 2))
    q, k, order = abs(q), abs(k), np.arange(2, dtype=np.int32)  # so that no feature is zero
    found = mechanism.edge_weights(
        q, k, EdgeIndex(jnp.array([0, 2, 1]), jnp.array([0, 2, 0]), 2, 2), i=order, j=order, **extra
    )
    assert found[1] == 0
    assert (found[jnp.array([0, 2])] != 0).all()


def test_with_fewer_queries_than_keys_positions_are_required():
    mechanism, mask = Softmax(), EdgeList(np.array([4, 2, 2]), np.array([1, 0, 3]))
    q, k, v, _ = inputs(mechanism, 2, 5)
    i = np.array([2, 4])
    adjacency = np.zeros((5, 5), bool)
    adjacency[mask.query, mask.key] = True
    known = lambda mask, i: jax.jit(lambda: mechanism.attend(q, k, v, mask, i=i))()
    found = known(mask, i)
    near(found, known(Edges(adjacency), i), EXACT)
    # Traced and repeated positions are looked up pair by pair.
    near(jax.jit(lambda i: mechanism.attend(q, k, v, mask, i=i))(i), found, EXACT)
    twice = np.array([4, 4])
    near(known(mask, twice), known(Edges(adjacency), twice), EXACT)
    with pytest.raises(ValueError, match="needs the positions i of the queries"):
        mechanism.attend(q, k, v, mask)


@pytest.mark.parametrize("mechanism", [Softmax(score=SCORES["gat"]), Linear()], ids=["softmax", "linear"])
def test_no_array_is_larger_than_the_number_of_edges(mechanism):
    nodes, degree, K = 500, 4, 4
    query = np.arange(nodes).repeat(degree)
    mask = EdgeList(query, (query * 3 + np.tile(np.arange(degree), nodes)) % nodes)
    extra = mechanism.initial(jax.random.key(0), K, K)
    x = jnp.zeros((nodes, K))

    def program(mask):
        value = lambda x, extra: mechanism.attend(x, x, x, mask, **extra).sum()
        return jax.make_jaxpr(jax.value_and_grad(value, argnums=(0, 1)))(x, extra).jaxpr

    assert largest(program(mask)) <= 2 * nodes * degree * K
    assert largest(program(Edges(np.zeros((nodes, nodes), bool)))) >= nodes * nodes
