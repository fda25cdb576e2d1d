"""Node classification: the class of every node of a graph, from a few known ones (Yang, Cohen, Salakhutdinov 2016)."""

from __future__ import annotations

from dataclasses import dataclass

from attnlab.data.graphs import cora, graph_file, graphs
from attnlab.data.io import files
from attnlab.tasks.base import checks
from attnlab.tasks.base.task import Task
from attnlab.tasks.graphs.node_data import NodeData


class GraphTask(Task):
    """A task on one graph."""

    def with_test(self, problem: NodeData, file: str) -> NodeData:
        """Returns the data on the graph of an npz file.

        All nodes of that graph are the test part. If it is the graph that was trained on, its own test nodes are.
        """
        return problem.with_test(graph_file.read(files.user_path(file), file, problem.graph.classes), file)


@dataclass(frozen=True)
class Cora(GraphTask):
    """Papers and their citations: the field of each of 1,000 papers, from 140 known ones. Scored by accuracy.

    The parts are those of Planetoid. A batch of 140 contains all labelled training nodes.
    """

    def load(self) -> NodeData:
        """Reads the graph. It is downloaded if it is not available locally."""
        return NodeData(*cora.parts())


@dataclass(frozen=True)
class Nodes(GraphTask):
    """The classes of the nodes of your own graph. Scored by accuracy."""

    graph: str = ""
    """The path of an npz file of sparse matrices, with the layout of Cora's. Edges are used in both directions.

    "" generates a graph of 2,000 nodes in four communities.
    """
    split: str = ""
    """The path of a file that assigns nodes to parts. Each line is the name of a node, a tab, and train, valid or test.

    "" draws the parts from `seed`.
    """
    each: int = 20
    """The number of training nodes of each class, if there is no `split`."""
    valid_examples: int = 500
    """The number of validation nodes, if there is no `split`."""
    test_examples: int = 1000
    """The number of test nodes, if there is no `split`."""
    seed: int = 0
    """The seed of the parts and of a generated graph, in 0 … 2³²−1."""

    def __post_init__(self):
        checks.counts(self, ["each"], most=graphs.MOST)
        checks.examples(self, ["valid", "test"])
        checks.seed(self)
        if self.split:
            checks.unused(self, "split", ["each", "valid_examples", "test_examples"])

    def load(self) -> NodeData:
        """Reads or generates the graph, and divides its nodes."""
        graph = graph_file.read(files.user_path(self.graph)) if self.graph else graphs.drawn(2000, 4, self.seed)
        if self.split:
            return NodeData(graph, graphs.split(graph, files.user_path(self.split)))
        sizes = self.each, self.valid_examples, self.test_examples
        return NodeData(graph, graphs.divided(graph, *sizes, self.seed))
