"""The graph attention network (Veličković et al. 2018): neighbours by weights that depend on what they are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import jax
from jaxtyping import PRNGKeyArray

from attnlab.mechanisms import Mechanism, Softmax
from attnlab.models.config import check_shape
from attnlab.models.gcn import GraphNetwork, check_graph
from attnlab.modules.attention import check_heads
from attnlab.modules.dense import fold_key
from attnlab.modules.graph import GraphAttention, GraphStack, check_edges
from attnlab.ops.score import gat


@dataclass(frozen=True)
class Gat:
    """`layers` of graph attention, ELU between them; all but the last `width` wide, in `heads`, the last of one head.

    `mechanism` is any that weighs the edges of a graph alone, whatever its nodes' numbers: softmax with any score but
    `location`, linear attention with any map but cosFormer's. `dropout` acts on every layer's inputs, and on its
    weights. `l2` adds ½ l2 Σ w² over all parameters to the loss, as published.

    Raises ValueError naming the field for what cannot work.
    """

    width: int = 64
    heads: int = 8
    layers: int = 2
    mechanism: Mechanism = Softmax(score=gat)
    dropout: float = 0.6
    l2: float = 5e-4

    def __post_init__(self):
        check_graph(self)
        check_heads(self.width, self.heads, self.heads)
        check_edges(self.mechanism)

    def create(self, key: PRNGKeyArray, shape: Any) -> GraphNetwork:
        """A new network for a graph of that shape (`attnlab.tasks.graphs.nodes.Labelled`)."""
        check_shape(self, shape, "nodes", "features", "classes")
        inputs = [shape.features, *[self.width] * (self.layers - 1)]
        sizes = [self.width // self.heads] * (self.layers - 1) + [shape.classes]
        heads = [self.heads] * (self.layers - 1) + [1]
        mechanism = self.mechanism.sized(shape.nodes)
        layers = [
            GraphAttention(fold_key(key, f"layer {n}"), width, sizes[n], heads[n], mechanism, self.dropout)
            for n, width in enumerate(inputs)
        ]
        stack = GraphStack(layers, jax.nn.elu)
        return GraphNetwork(stack, shape.nodes, shape.features, self.l2, self.layers)
