"""The class of every node of a graph, from a few that are known (Yang, Cohen, Salakhutdinov 2016)."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from copy import copy
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from attnlab.data.batches import Buckets
from attnlab.data.graphs import cora, graph_file, graphs
from attnlab.data.graphs.graphs import UNKNOWN, Graph
from attnlab.data.io import files
from attnlab.data.io.files import DataError
from attnlab.data.names import PARTS, check_part, composed
from attnlab.tasks.base import checks
from attnlab.tasks.base.batching import even
from attnlab.tasks.base.sampled import sampled
from attnlab.tasks.base.task import Batch, Row, Task, TaskData

EXAMINED = 1024  # nodes of an examination's batch: each batch goes over the whole graph


class GraphTask(Task):
    """A task of one graph."""

    def with_test(self, problem: Any, file: str) -> NodeClassification:
        """The problem on the graph of an npz file: all of its nodes, or the test nodes of the graph trained on."""
        return problem.with_test(graph_file.read(files.user_path(file), file, problem.graph.classes), file)


@dataclass(frozen=True)
class Cora(GraphTask):
    """Papers and what they cite: the field of each of 1,000, from 140 that are known; scored by accuracy.

    The parts are those of Planetoid. A batch of 140 is all that is known.
    """

    def load(self) -> NodeClassification:
        """Read the graph, fetched where it is not at hand."""
        return NodeClassification(*cora.parts())


@dataclass(frozen=True)
class Nodes(GraphTask):
    """The class of nodes of a graph of one's own; scored by accuracy.

    `graph` names an npz file of sparse matrices, laid out as that of Cora, whose edges are taken in both directions;
    without one, a graph of 2,000 nodes in four communities is drawn. `split` names a file of lines of a node's name, a
    tab and its part (train, valid, test); without one, the parts are drawn by `seed`: `each` of every class to train
    with, and of the others `valid_examples` and `test_examples`.
    """

    graph: str = ""
    split: str = ""
    each: int = 20
    valid_examples: int = 500
    test_examples: int = 1000
    seed: int = 0

    def __post_init__(self):
        checks.counts(self, ["each"], most=graphs.MOST)
        checks.examples(self, ["valid", "test"])
        checks.seed(self)
        if self.split:
            checks.unused(self, "split", ["each", "valid_examples", "test_examples"])

    def load(self) -> NodeClassification:
        """Read or draw the graph, and divide it."""
        graph = graph_file.read(files.user_path(self.graph)) if self.graph else graphs.drawn(2000, 4, self.seed)
        if self.split:
            return NodeClassification(graph, graphs.split(graph, files.user_path(self.split)))
        sizes = self.each, self.valid_examples, self.test_examples
        return NodeClassification(graph, graphs.divided(graph, *sizes, self.seed))


@dataclass(frozen=True)
class Labelled:
    """What a model of a graph must be built for: so many nodes, each with features, and classes of them."""

    nodes: int
    features: int
    classes: int


class NodeClassification(TaskData):
    """One graph, of which some nodes' classes are known. `parts` holds nodes by "train", "valid" and "test".

    Batches are {"node", "label": [B] int32}, label −1: not asked. A model is called with edges [E 2], entries [M 2] and
    values [M] of the whole graph (`attnlab.data.graphs.graphs.Graph`), which are the same in every batch and stand in
    the program, and answers scores [N classes]; its `penalty()` is added to the loss.
    """

    metric, higher = "accuracy", True
    figure = "probability"

    def __init__(self, graph: Graph, parts: Mapping[str, np.ndarray]):
        self.graph, self.parts = graph, parts
        self.shape = Labelled(len(graph.labels), graph.features, len(graph.classes))
        self.notes = (*graph.notes, *_absent(graph, parts))
        self._order = Buckets(np.ones(len(parts["train"]), np.int64), count=1)
        self._at = {name: n for n, name in enumerate(graph.names)}
        digest = hashlib.sha256(graph.fingerprint.encode())
        for name in PARTS:
            digest.update(f"{name} {len(parts[name])} ".encode() + parts[name].astype("<i4").tobytes())
        self.fingerprint = digest.hexdigest()

    def batch(self, seed: int, step: int, size: int) -> Batch:
        """Nodes whose class is known, each once an epoch."""
        rows, _ = self._order.batch(seed, step, size)
        return self._asked(self.parts["train"][rows])

    def loss(self, model: Any, batch: Batch, key: Any) -> tuple[Any, dict[str, Any]]:
        """Cross-entropy in nats, the mean over the nodes asked, and the model's penalty; {"nats", "accuracy"}."""
        import jax.numpy as jnp

        told = self._tell(model, batch, key)
        asked = jnp.asarray(batch["label"]) >= 0
        count = jnp.maximum(asked.sum(), 1).astype(told["nats"].dtype)
        nats, accuracy = (jnp.where(asked, told[name], 0).sum() / count for name in ("nats", "right"))
        return nats + model.penalty().astype(nats.dtype), {"nats": nats, "accuracy": accuracy}

    def answer(self, model: Any, batch: Batch) -> Batch:
        """{"label", "probability", "nats", "right": [B]}: the likeliest class, and how likely; if right, 1."""
        return self._tell(model, batch, None)

    def eval_batches(self, part: str, limit: int | None = None) -> list[Batch]:
        """Up to 1,024 nodes a batch."""
        # Filled up with the first node, which is not asked for.
        return even(self._asked(self._examined(part, limit)), EXAMINED, label=UNKNOWN)

    def score(self, part: str, answers: list[Batch], limit: int | None = None) -> dict[str, float]:
        """{"accuracy", "nats"}: the means over the nodes whose class is known; {} where there are none."""
        known = self.graph.labels[self._examined(part, limit)] != UNKNOWN
        values = {
            metric: np.concatenate([np.asarray(answer[name], np.float64) for answer in answers])[: len(known)][known]
            for metric, name in (("accuracy", "right"), ("nats", "nats"))
        }
        return {metric: float(value.mean()) for metric, value in values.items()} if known.any() else {}

    def with_test(self, graph: Graph, path: str) -> NodeClassification:
        """The same problem on another graph, read from the file `path`: all of its nodes are the test.

        A model for it must be built for its `shape`. Raises DataError for another number of features, and for a class
        that training has not.
        """
        found = copy(self)
        found.notes = (f"{path} is the graph that it was trained on: the nodes of its test are examined",)
        if graph.fingerprint == self.graph.fingerprint:
            return found
        if graph.features != self.graph.features:
            made = f"the model was made for {self.graph.features:,}"
            raise DataError(f"{path}: its nodes have {graph.features:,} features, and {made}")
        known = {name: n for n, name in enumerate(self.graph.classes)}
        for n in np.unique(graph.labels[graph.labels != UNKNOWN]):
            if (name := graph.classes[n]) not in known:
                node, shown = graph.names[int(np.argmax(graph.labels == n))], ", ".join(list(known)[:12])
                raise DataError(f"{path}: the class {name!r} of node {node!r} is none of those trained with: {shown}")
        ids = np.array([*(known.get(name, UNKNOWN) for name in graph.classes), UNKNOWN], np.int32)
        found.graph = replace(graph, labels=ids[graph.labels], classes=self.graph.classes)
        found.parts = {**self.parts, "test": np.arange(len(graph.labels), dtype=np.int32)}
        found.shape = Labelled(len(graph.labels), graph.features, len(self.graph.classes))
        found._at = {name: n for n, name in enumerate(graph.names)}
        found.notes = graph.notes
        return found

    def rows(self, part: str, answers: list[Batch], limit: int | None = None) -> list[Row]:
        """Each node by its name, with its class, the class that it is given, and the probability of that."""
        said, chance = (np.concatenate([np.asarray(a[name]) for a in answers]) for name in ("label", "probability"))
        names, classes, labels = self.graph.names, self.graph.classes, self.graph.labels
        return [
            Row(
                names[node],
                classes[labels[node]] if labels[node] != UNKNOWN else None,
                classes[said[n]],
                float(chance[n]),
            )
            for n, node in enumerate(self._examined(part, limit))
        ]

    def counted(self, part: str, limit: int | None = None) -> int | None:
        """Nodes."""
        return len(self._examined(part, limit))

    def encode_prompt(self, text: str) -> Batch:
        """One node by its name. Raises DataError where the graph has none of it."""
        if (name := composed(text.strip())) not in self._at:
            known = ", ".join(self.graph.names[:3])
            raise DataError(f"the graph has no node {name!r}; its {len(self._at):,} nodes are {known}, …")
        return self._asked(np.array([self._at[name]], np.int32))

    def format_answer(self, answer: Batch) -> str:
        """The class, and how likely it is held to be."""
        label, probability = (np.asarray(answer[name])[0] for name in ("label", "probability"))
        return f"{self.graph.classes[int(label)]} {probability:.2f}"

    def tokens(self, batch: Batch) -> dict[str, list[str]]:
        """The node with those it is joined to, and the class it has, where that is known."""
        node, graph = int(np.asarray(batch["node"])[0]), self.graph
        joined = graph.edges[graph.edges[:, 0] == node, 1]
        label = int(graph.labels[node])
        return {
            "source": [graph.names[n] for n in (node, *joined)],
            "target": [graph.classes[label]] if label != UNKNOWN else [],
        }

    @property
    def vocabulary(self) -> dict[str, Any]:
        """{"nodes": [names], "classes": [names]}."""
        return {"nodes": list(self.graph.names), "classes": list(self.graph.classes)}

    def _tell(self, model: Any, batch: Batch, key: Any) -> Batch:
        import jax
        import jax.numpy as jnp

        node, label = (jnp.asarray(batch[name]) for name in ("node", "label"))
        scores = model(self.graph.edges, self.graph.entries, self.graph.values, key=key)[node]
        logs = jax.nn.log_softmax(scores.astype(jnp.promote_types(scores.dtype, jnp.float32)), axis=1)
        said = jnp.argmax(logs, axis=1)
        of = lambda label: jnp.take_along_axis(logs, label[:, None], axis=1)[:, 0]
        return {
            "label": said,
            "probability": jnp.exp(of(said)),
            "nats": -of(jnp.maximum(label, 0)),
            "right": (said == label).astype(logs.dtype),
        }

    def _asked(self, nodes: np.ndarray) -> Batch:
        return {"node": nodes.astype(np.int32), "label": self.graph.labels[nodes]}

    def _examined(self, part: str, limit: int | None) -> np.ndarray:
        check_part(part, limit)
        nodes = self.parts[part]
        return nodes[sampled(len(nodes), limit)]


def _absent(graph: Graph, parts: Mapping[str, np.ndarray]) -> list[str]:
    """A line for each part that lacks a class."""
    told = []
    for part in PARTS:
        lacking = np.setdiff1d(np.arange(len(graph.classes)), graph.labels[parts[part]])
        if len(lacking):
            names = ", ".join(graph.classes[n] for n in lacking[:5])
            end = ": they can never be named" if part == "train" else ""
            told.append(f"{len(lacking)} of {len(graph.classes)} classes have no node of {part} ({names}){end}")
    return told
