"""The graph attention network (Veličković et al. 2018), which weighs neighbours by their features."""

from __future__ import annotations

from dataclasses import dataclass

import jax
from jaxtyping import PRNGKeyArray

from attnlab.documented import Documented
from attnlab.mechanisms import Mechanism, Softmax
from attnlab.models.gcn import GraphNetwork, check_graph
from attnlab.models.shapes import GraphShape, Shape, check_shape
from attnlab.modules.attention_layer import check_heads
from attnlab.modules.dense import fold_key
from attnlab.modules.graph import GraphAttention, GraphStack, check_edges
from attnlab.ops.score import gat


@dataclass(frozen=True)
class Gat(metaclass=Documented):
    """Configuration of a graph attention network with ELU between layers.

    Raises:
        ValueError: A field, or a combination of fields, is invalid. The message names the field.
    """

    width: int = 64
    """Size of the output of all layers but the last."""
    heads: int = 8
    """Number of heads of all layers but the last, which has one."""
    layers: int = 2
    """Number of layers."""
    mechanism: Mechanism = Softmax(score=gat)
    """The attention mechanism. It must support restriction to the edges of a graph and not depend on node numbers.

    These are softmax with any score except `location`, and linear attention with any feature map except cosFormer's.
    """
    dropout: float = 0.6
    """Dropout probability, applied to the inputs of every layer and to its attention weights."""
    l2: float = 5e-4
    """Adds ½ l2 Σ w² over all parameters to the loss, as in the paper."""

    def __post_init__(self):
        check_graph(self.width, self.layers, self.dropout, self.l2)
        check_heads(self.width, self.heads, self.heads)
        check_edges(self.mechanism)

    def create(self, key: PRNGKeyArray, shape: Shape) -> GraphNetwork:
        """Create a network for a graph of `shape` (`attnlab.tasks.graphs.node_data.NodeClasses`)."""
        shape = check_shape(self, shape, GraphShape)
        inputs = [shape.features, *[self.width] * (self.layers - 1)]
        sizes = [self.width // self.heads] * (self.layers - 1) + [shape.classes]
        heads = [self.heads] * (self.layers - 1) + [1]
        mechanism = self.mechanism.with_length(shape.nodes)
        layers = [
            GraphAttention(fold_key(key, f"layer {n}"), width, sizes[n], heads[n], mechanism, self.dropout)
            for n, width in enumerate(inputs)
        ]
        stack = GraphStack(layers, jax.nn.elu)
        return GraphNetwork(stack, shape.nodes, shape.features, self.l2, self.layers)
