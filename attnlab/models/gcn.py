"""The graph convolutional network (Kipf and Welling 2017): neighbours by fixed weights."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import jax
import jax.numpy as jnp
from flax import nnx
from jaxtyping import Array, Float, Int, PRNGKeyArray

from attnlab.models.config import check_dropout, check_shape, check_sizes
from attnlab.modules.dense import fold_key
from attnlab.modules.graph import GraphConvolution, GraphStack, Sparse, add_self_loops
from attnlab.ops.edges import EdgeIndex
from attnlab.ops.mask import Places
from attnlab.ops.serial import serial


@dataclass(frozen=True)
class Gcn:
    """`layers` convolutions of a graph, ReLU between them, all but the last `width` wide.

    `dropout` acts before every layer. `l2` adds ½ l2 Σ w² over the first layer's weights to the loss, as published.

    Raises ValueError naming the field for what cannot work.
    """

    width: int = 16
    layers: int = 2
    dropout: float = 0.5
    l2: float = 5e-4

    def __post_init__(self):
        check_graph(self)

    def create(self, key: PRNGKeyArray, shape: Any) -> GraphNetwork:
        """A new network for a graph of that shape (`attnlab.tasks.graphs.nodes.Labelled`)."""
        check_shape(self, shape, "nodes", "features", "classes")
        widths = [shape.features, *[self.width] * (self.layers - 1), shape.classes]
        layers = [
            GraphConvolution(fold_key(key, f"layer {n}"), *sizes, self.dropout)
            for n, sizes in enumerate(pairwise(widths))
        ]
        return GraphNetwork(GraphStack(layers, jax.nn.relu), shape.nodes, shape.features, self.l2, 1)


class GraphNetwork(nnx.Module):
    """Layers over one graph, which comes as its edges and what stands in its features.

    `penalised` of its layers, counted from the first, are in `penalty`.
    """

    def __init__(self, stack: GraphStack, nodes: int, features: int, l2: float, penalised: int):
        self.stack, self.nodes, self.features, self.l2, self.penalised = stack, nodes, features, l2, penalised

    def __call__(
        self,
        links: Int[Places, "E 2"],
        entries: Int[Places, "M 2"],
        values: Float[Places, " M"],
        key: PRNGKeyArray | None = None,
    ) -> Float[Array, "N classes"]:
        """Scores of every class for every node: edges (node, neighbour), features as (node, feature) and value."""
        ends, words = self._placed(links, entries)

        def one(stack, values, key):
            return stack(Sparse(values, words), ends, key)

        return serial(one)(self.stack, jnp.asarray(values), key)

    def weights(self, links, entries, values) -> tuple[EdgeIndex, list[Float[Array, "E H"]]]:
        """How much every node takes from which others, layer by layer, where its layers can tell."""
        ends, words = self._placed(links, entries)
        x, found = Sparse(jnp.asarray(values), words), []
        for n, layer in enumerate(self.stack.layers):
            x = self.stack.activation(x) if n else x
            found.append(layer.weights(x, ends))
            x = layer(x, ends)
        return ends, found

    def penalty(self) -> Float[Array, ""]:
        """½ l2 Σ w² over the penalised layers' weights: to be added to a loss."""
        leaves = jax.tree.leaves(list(self.stack.layers)[: self.penalised])
        return 0.5 * self.l2 * jnp.sum(jnp.stack([jnp.sum(jnp.square(leaf)) for leaf in leaves]))

    def _placed(self, links, entries) -> tuple[EdgeIndex, EdgeIndex]:
        return add_self_loops(links, self.nodes), EdgeIndex(entries[:, 0], entries[:, 1], self.nodes, self.features)


def check_graph(config: Any) -> None:
    """Raise ValueError, naming the field, for what no network of a graph can have."""
    check_sizes(config, "width", "layers")
    check_dropout(config)
    if not 0 <= config.l2 < float("inf"):
        raise ValueError(f"model.l2={config.l2} must be a finite number, 0 or more")
