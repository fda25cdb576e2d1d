"""Graph layers, which compute each node from its neighbours."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx
from jax.core import Tracer
from jaxtyping import Array, Float, Int, PRNGKeyArray

from attnlab.mechanisms.base import Mechanism
from attnlab.mechanisms.pairwise import Pairwise
from attnlab.modules.dense import INITIALISERS, fold_key
from attnlab.modules.learned import extras, init_learned
from attnlab.modules.parameter import NoDecay
from attnlab.ops import edges
from attnlab.ops.edges import EdgeIndex
from attnlab.ops.layer import dropout, split_keys
from attnlab.ops.mask import ArrayOrNumpy


class Sparse(NamedTuple):
    """A sparse matrix [N D] with M stored entries."""

    values: Float[Array, " M"]
    """Values of the entries."""
    ends: EdgeIndex
    """Row (t) and column (s) of each entry."""


def add_self_loops(links: Int[ArrayOrNumpy, "E 2"], N: int) -> EdgeIndex:
    """Return the edges of a graph of N nodes, with one edge from every node to itself.

    An isolated node then attends to itself. Self-loops among the given edges become padding, because they would
    otherwise count twice.

    Args:
        links: Edges as (query, key). A node N or above is padding.
        N: Number of nodes.

    Raises:
        ValueError: A node is negative, and the edges are not traced.
    """
    module = jnp if isinstance(links, Tracer) else np
    if module is np and links.size and links.min() < 0:
        raise ValueError(f"expected nodes of at least 0 in links, got {links.min()}")
    loops = np.arange(N, dtype=np.int32)
    links = module.where((links[:, 0] == links[:, 1])[:, None], N, links)
    t, s = (module.concatenate([links[:, n], loops]) for n in (0, 1))
    return EdgeIndex(t, s, N, N)


def sparse_matmul(x: Float[Array, "N D"] | Sparse, w: Float[Array, "D F"]) -> Float[Array, "N F"]:
    """Return x w. For a sparse x, memory is proportional to the number of its entries."""
    return edges.sum_values(x.values, w, x.ends) if isinstance(x, Sparse) else x @ w


def dropout_entries(
    x: Float[Array, "N D"] | Sparse, rate: float, key: PRNGKeyArray | None
) -> Float[Array, "N D"] | Sparse:
    """Apply dropout to x. For a sparse x, only the stored entries need random numbers, because zeros stay zeros.

    Args:
        x: Features of the nodes, [N D] or `Sparse`.
        rate: Dropout probability.
        key: Key for dropout. None means no dropout.
    """
    return Sparse(dropout(x.values, rate, key), x.ends) if isinstance(x, Sparse) else dropout(x, rate, key)


def _check_nodes(x: Float[Array, "N D"] | Sparse, ends: EdgeIndex) -> None:
    """Raise ValueError unless x has one row per node: missing rows would count as zeros."""
    rows = x.ends.T if isinstance(x, Sparse) else x.shape[0]
    if rows != ends.S:
        raise ValueError(f"x has {rows} rows, expected one for each of the {ends.S} nodes")


class GraphConvolution(nnx.Module):
    """Graph convolution (Kipf and Welling 2017, eq. 2): y = D^−½ A D^−½ x W, for x [N D] and y [N F].

    A is the adjacency matrix with self-loops, and D its diagonal matrix of degrees.

    Args:
        key: Key for the initial parameters.
        inputs: Size D of the inputs.
        outputs: Size F of the outputs.
        rate: Dropout probability of the entries of x.
    """

    def __init__(self, key: PRNGKeyArray, inputs: int, outputs: int, rate: float):
        self.w, self.rate = nnx.Param(INITIALISERS["xavier"](key, (inputs, outputs))), rate

    def __call__(
        self, x: Float[Array, "N D"] | Sparse, ends: EdgeIndex, key: PRNGKeyArray | None = None
    ) -> Float[Array, "N F"]:
        """Compute the layer.

        Args:
            x: Features of the nodes, [N D] or `Sparse`.
            ends: Edges, self-loops included (`add_self_loops`).
            key: Key for dropout. None means no dropout.

        Raises:
            ValueError: x does not have one row per node.
        """
        _check_nodes(x, ends)
        w = self.w[...]
        return edges.sum_values(
            edges.symmetric_normalization(ends, w.dtype), sparse_matmul(dropout_entries(x, self.rate, key), w), ends
        )


class GraphAttention(nnx.Module):
    """Graph attention: each head computes y_i = Σ_j w_ij W x_j + b over the edges (i, j), and heads are concatenated.

    The weights w are those of a mechanism for q = k = v = W x. `Softmax(score=gat)` gives equations 1-5 of Veličković
    et al. (2018). The authors' code has a bias in each half of the score, dropout of the values W x as well, and
    initial weights of the score of about twice the variance.

    Args:
        key: Key for the initial parameters.
        inputs: Size of the inputs.
        size: Output size of a head.
        heads: Number of heads.
        mechanism: The attention mechanism.
        rate: Dropout probability of the inputs and of the attention weights.

    Raises:
        ValueError: The mechanism cannot compute the weights of single edges, or depends on node numbers
            (`check_edges`).
    """

    def __init__(self, key: PRNGKeyArray, inputs: int, size: int, heads: int, mechanism: Mechanism, rate: float):
        self.heads, self.mechanism, self.rate = heads, check_edges(mechanism), rate
        self.w = nnx.Param(INITIALISERS["xavier"](fold_key(key, "w"), (inputs, heads * size)))
        self.b = NoDecay(jnp.zeros(heads * size))
        self.learned = init_learned(mechanism, key, size, size, heads)

    def __call__(
        self, x: Float[Array, "N D"] | Sparse, ends: EdgeIndex, key: PRNGKeyArray | None = None
    ) -> Float[Array, "N F"]:
        """Compute the layer.

        Args:
            x: Features of the nodes, [N D] or `Sparse`.
            ends: Edges, self-loops included (`add_self_loops`).
            key: Key for dropout. None means no dropout.

        Returns:
            The heads of each node, concatenated [N heads·size].

        Raises:
            ValueError: x does not have one row per node.
        """
        inputs, inner = split_keys(key, 2)
        h = self._heads(dropout_entries(x, self.rate, inputs), ends)
        y = edges.sum_values(dropout(self._along(h, ends), self.rate, inner), h, ends)
        return y.reshape(ends.T, -1) + self.b[...][None, :]

    def weights(self, x: Float[Array, "N D"] | Sparse, ends: EdgeIndex) -> Float[Array, "E H"]:
        """Return the attention weight of every edge and head."""
        return self._along(self._heads(x, ends), ends)

    def _heads(self, x: Float[Array, "N D"] | Sparse, ends: EdgeIndex) -> Float[Array, "N H K"]:
        _check_nodes(x, ends)
        return sparse_matmul(x, self.w[...]).reshape(ends.T, self.heads, -1)

    def _along(self, h: Float[Array, "N H K"], ends: EdgeIndex) -> Float[Array, "E H"]:
        i = np.arange(ends.T, dtype=np.int32)
        fixed = extras(self.mechanism, self.learned, self.heads)
        return jax.vmap(lambda h, fixed: self.mechanism.edge_weights(h, h, ends, i=i, j=i, **fixed), (1, 0), 1)(
            h, fixed
        )


def check_edges(mechanism: Mechanism) -> Pairwise:
    """Return the mechanism if it can compute the attention weights of the edges of a graph.

    Raises:
        ValueError: The mechanism needs all pairs or extra inputs, or it depends on node numbers, which are arbitrary.
    """
    if not isinstance(mechanism, Pairwise) or not mechanism.traits.edges or mechanism.tokens or mechanism.queries:
        raise ValueError(
            f"model.mechanism={mechanism} cannot be restricted to the edges of a graph; softmax and linear can"
        )
    if mechanism.traits.position_dependent:
        raise ValueError(
            f"model.mechanism={mechanism} depends on positions, and the nodes of a graph have none; "
            "softmax and linear do not"
        )
    return mechanism


class GraphStack(nnx.Module):
    """Graph layers with an activation between them. They map x, [N D] or `Sparse`, to [N F]."""

    def __init__(self, layers: list, activation: Callable):
        self.layers, self.activation = nnx.List(layers), activation

    def __call__(
        self, x: Float[Array, "N D"] | Sparse, ends: EdgeIndex, key: PRNGKeyArray | None = None
    ) -> Float[Array, "N F"]:
        """Return the output of the last layer. `key` None means no dropout."""
        first, *others = self.layers
        key_of = lambda n: None if key is None else jax.random.fold_in(key, n)
        y = first(x, ends, key_of(0))
        for n, layer in enumerate(others, start=1):
            y = layer(self.activation(y), ends, key_of(n))
        return y
