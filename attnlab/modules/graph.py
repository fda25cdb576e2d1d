"""Layers of graphs: every node from those that its edges lead to."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

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
from attnlab.ops.layer import dropout
from attnlab.ops.mask import Places


class Sparse(NamedTuple):
    """A matrix [N D] by what stands in it: its values [M], and which row and column each joins."""

    values: Float[Array, " M"]
    ends: EdgeIndex


def add_self_loops(links: Int[Places, "E 2"], N: int) -> EdgeIndex:
    """The edges of N nodes (query, key), and one from every node to itself: an isolated one keeps what it is.

    Given edges from a node to itself become padding: they would count twice.
    """
    module = jnp if isinstance(links, Tracer) else np
    itself = np.arange(N, dtype=np.int32)
    links = module.where((links[:, 0] == links[:, 1])[:, None], N, links)
    t, s = (module.concatenate([links[:, n], itself]) for n in (0, 1))
    return EdgeIndex(t, s, N, N)


def sparse_matmul(x: Float[Array, "N D"] | Sparse, w: Float[Array, "D F"]) -> Float[Array, "N F"]:
    """x w, in memory that follows what stands in x."""
    return edges.sum_values(x.values, w, x.ends) if isinstance(x, Sparse) else x @ w


def dropout_entries(
    x: Float[Array, "N D"] | Sparse, rate: float, key: PRNGKeyArray | None
) -> Float[Array, "N D"] | Sparse:
    """Dropout: zeros stay zeros, so that of a sparse matrix what stands in it is drawn alone."""
    return Sparse(dropout(x.values, rate, key), x.ends) if isinstance(x, Sparse) else dropout(x, rate, key)


class GraphConvolution(nnx.Module):
    """y = D^−½ A D^−½ x W, A with every node joined to itself (Kipf and Welling 2017, eq. 2). x [N D] -> [N F].

    In training x is dropped with probability `rate`.
    """

    def __init__(self, key: PRNGKeyArray, inputs: int, outputs: int, rate: float):
        self.w, self.rate = nnx.Param(INITIALISERS["xavier"](key, (inputs, outputs))), rate

    def __call__(self, x: Any, ends: EdgeIndex, key: PRNGKeyArray | None = None) -> Float[Array, "N F"]:
        """Every node from itself and its neighbours."""
        w = self.w[...]
        return edges.sum_values(
            edges.symmetric_normalization(ends, w.dtype), sparse_matmul(dropout_entries(x, self.rate, key), w), ends
        )


class GraphAttention(nnx.Module):
    """y_i = Σ_j w_ij W x_j + b by heads, joined, over the edges from i; w is that of a mechanism for q = k = v = W x.

    With softmax of the score `gat` it is Veličković et al. 2018, eq. 1-5. In training inputs and weights are dropped
    with probability `rate`. Raises ValueError, naming the field, for a mechanism that cannot weigh edges alone, or
    weighs them by the nodes' numbers.
    """

    def __init__(self, key: PRNGKeyArray, inputs: int, size: int, heads: int, mechanism: Mechanism, rate: float):
        self.heads, self.mechanism, self.rate = heads, check_edges(mechanism), rate
        self.w = nnx.Param(INITIALISERS["xavier"](fold_key(key, "w"), (inputs, heads * size)))
        self.b = NoDecay(jnp.zeros(heads * size))
        self.learned = init_learned(mechanism, key, size, size, heads)

    def __call__(self, x: Any, ends: EdgeIndex, key: PRNGKeyArray | None = None) -> Float[Array, "N F"]:
        """Every node's heads side by side."""
        inputs, inner = (None, None) if key is None else jax.random.split(key)
        h = self._heads(dropout_entries(x, self.rate, inputs), ends)
        y = edges.sum_values(dropout(self._along(h, ends), self.rate, inner), h, ends)
        return y.reshape(ends.T, -1) + self.b[...][None, :]

    def weights(self, x: Any, ends: EdgeIndex) -> Float[Array, "E H"]:
        """The weight of every edge, by heads."""
        return self._along(self._heads(x, ends), ends)

    def _heads(self, x: Any, ends: EdgeIndex) -> Float[Array, "N H K"]:
        return sparse_matmul(x, self.w[...]).reshape(ends.T, self.heads, -1)

    def _along(self, h: Float[Array, "N H K"], ends: EdgeIndex) -> Float[Array, "E H"]:
        i = np.arange(ends.T, dtype=np.int32)
        fixed = extras(self.mechanism, self.learned, self.heads)
        return jax.vmap(lambda h, fixed: self.mechanism.edge_weights(h, h, ends, i=i, j=i, **fixed), (1, 0), 1)(
            h, fixed
        )


def check_edges(mechanism: Any) -> Pairwise:
    """Returns the mechanism if it can weigh the edges of a graph.

    Raises:
        ValueError: if it computes all pairs, needs extra inputs, or depends on node numbers, which mean nothing.
    """
    if not isinstance(mechanism, Pairwise) or not mechanism.traits.edges or mechanism.tokens or mechanism.queries:
        raise ValueError(
            f"model.mechanism={mechanism} cannot weigh the edges of a graph alone; such as softmax and linear can"
        )
    if mechanism.traits.position_dependent:
        raise ValueError(
            f"model.mechanism={mechanism} weighs by where tokens stand, and the nodes of a graph stand nowhere; "
            "such as softmax and linear do not"
        )
    return mechanism


class GraphStack(nnx.Module):
    """Layers of a graph with an activation between them. x [N D] or `Sparse` -> [N F]."""

    def __init__(self, layers: list, activation: Callable):
        self.layers, self.activation = nnx.List(layers), activation

    def __call__(self, x: Any, ends: EdgeIndex, key: PRNGKeyArray | None = None) -> Float[Array, "N F"]:
        """The last layer's answer."""
        for n, layer in enumerate(self.layers):
            x = layer(self.activation(x) if n else x, ends, None if key is None else jax.random.fold_in(key, n))
        return x
