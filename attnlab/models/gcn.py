"""The graph convolutional network (Kipf and Welling 2017), which weighs neighbours by fixed weights."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import jax
import jax.numpy as jnp
from flax import nnx
from jaxtyping import Array, Float, Int, PRNGKeyArray

from attnlab.documented import Documented
from attnlab.models.checks import check_dropout, check_sizes
from attnlab.models.shapes import GraphShape, Shape, check_shape
from attnlab.modules.dense import fold_key
from attnlab.modules.graph import GraphConvolution, GraphStack, Sparse, add_self_loops
from attnlab.ops.edges import EdgeIndex
from attnlab.ops.mask import ArrayOrNumpy
from attnlab.ops.serial import serial


@dataclass(frozen=True)
class Gcn(metaclass=Documented):
    """Configuration of a graph convolutional network with ReLU between layers.

    Raises:
        ValueError: A field, or a combination of fields, is invalid. The message names the field.
    """

    width: int = 16
    """Size of the output of all layers but the last."""
    layers: int = 2
    """Number of layers."""
    dropout: float = 0.5
    """Dropout probability, applied before every layer."""
    l2: float = 5e-4
    """Adds ½ l2 Σ w² over the weights of the first layer to the loss, as in the paper."""

    def __post_init__(self):
        check_graph(self.width, self.layers, self.dropout, self.l2)

    def create(self, key: PRNGKeyArray, shape: Shape) -> GraphNetwork:
        """Create a network for a graph of `shape` (`attnlab.tasks.graphs.node_data.NodeClasses`)."""
        shape = check_shape(self, shape, GraphShape)
        widths = [shape.features, *[self.width] * (self.layers - 1), shape.classes]
        layers = [
            GraphConvolution(fold_key(key, f"layer {n}"), *sizes, self.dropout)
            for n, sizes in enumerate(pairwise(widths))
        ]
        return GraphNetwork(GraphStack(layers, jax.nn.relu), shape.nodes, shape.features, self.l2, 1)


class GraphNetwork(nnx.Module):
    """A stack of layers over one graph, given as its edges and the nonzero entries of its features.

    Args:
        stack: The layers.
        nodes: Number N of nodes.
        features: Number of features of a node.
        l2: Strength of the penalty on weights.
        penalised: Number of layers, counted from the first, whose weights enter `penalty`.
    """

    def __init__(self, stack: GraphStack, nodes: int, features: int, l2: float, penalised: int):
        self.stack, self.nodes, self.features, self.l2, self.penalised = stack, nodes, features, l2, penalised

    def __call__(
        self,
        links: Int[ArrayOrNumpy, "E 2"],
        entries: Int[ArrayOrNumpy, "M 2"],
        values: Float[ArrayOrNumpy, " M"],
        key: PRNGKeyArray | None = None,
    ) -> Float[Array, "N classes"]:
        """Return the class logits of every node.

        Args:
            links: Edges as (node, neighbour).
            entries: Indices of the nonzero features as (node, feature).
            values: Values of the nonzero features.
            key: Key for dropout. None means no dropout.
        """
        ends, cells = self._placed(links, entries)

        def one(stack, values, key):
            return stack(Sparse(values, cells), ends, key)

        return serial(one)(self.stack, jnp.asarray(values), key)

    def weights(self, links, entries, values) -> tuple[EdgeIndex, list[Float[Array, "E H"]]]:
        """Return the edges, and the weight of each edge by layer. Only for layers with a method `weights`."""
        ends, cells = self._placed(links, entries)
        x, weights = Sparse(jnp.asarray(values), cells), []
        for n, layer in enumerate(self.stack.layers):
            x = self.stack.activation(x) if n else x
            weights.append(layer.weights(x, ends))
            x = layer(x, ends)
        return ends, weights

    def penalty(self) -> Float[Array, ""]:
        """Return ½ l2 Σ w² over all parameters of the penalised layers, to be added to the loss."""
        leaves = jax.tree.leaves(list(self.stack.layers)[: self.penalised])
        return 0.5 * self.l2 * jnp.sum(jnp.stack([jnp.sum(jnp.square(leaf)) for leaf in leaves]))

    def _placed(self, links, entries) -> tuple[EdgeIndex, EdgeIndex]:
        """Return the edges with self-loops, and the rows and columns of the feature entries."""
        return add_self_loops(links, self.nodes), EdgeIndex(entries[:, 0], entries[:, 1], self.nodes, self.features)


def check_graph(width: int, layers: int, rate: float, l2: float) -> None:
    """Raise ValueError if a field that all graph networks share is invalid.

    Args:
        width: Size of the hidden layers.
        layers: Number of layers.
        rate: Dropout probability.
        l2: Strength of the penalty on weights.
    """
    check_sizes(width=width, layers=layers)
    check_dropout(rate)
    if not 0 <= l2 < float("inf"):
        raise ValueError(f"model.l2={l2} must be a finite number, 0 or more")
