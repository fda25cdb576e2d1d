"""The data of node classification: one graph in which the classes of some nodes are known."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from copy import copy
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from attnlab.data.batches import Buckets
from attnlab.data.graphs.graphs import UNKNOWN, Graph
from attnlab.data.io.files import DataError
from attnlab.data.names import PARTS, check_part, composed
from attnlab.data.repeats import repeated
from attnlab.tasks.base.batching import equal_batches
from attnlab.tasks.base.example import ModelExample, TaskMaps
from attnlab.tasks.base.metrics import ACCURACY, NATS
from attnlab.tasks.base.models import NodeClassifier
from attnlab.tasks.base.sampled import sampled
from attnlab.tasks.base.task import Row, TaskData
from attnlab.tasks.base.text_interface import Batch

if TYPE_CHECKING:
    from jaxtyping import Array, Float, PRNGKeyArray


EXAMINED = 1024  # nodes in an evaluation batch; each batch computes the whole graph


@dataclass(frozen=True)
class NodeClasses:
    """The shape of the task: what a graph model must be built for."""

    nodes: int
    """The number of nodes."""
    features: int
    """The number of features of a node."""
    classes: int
    """The number of classes."""


class NodeData(TaskData):
    """One graph in which the classes of some nodes are known.

    Batches are {"node", "label": [B] int32}. Nodes with label −1 are not scored. A model is called with edges [E 2],
    entries [M 2] and values [M] of the whole graph (`attnlab.data.graphs.graphs.Graph`). These are the same in every
    batch and are constants of the compiled program. The model returns scores [N classes], and its `penalty()` is added
    to the loss.

    Args:
        graph: The graph.
        parts: The nodes of "train", "valid" and "test".
    """

    metric, more_metrics = ACCURACY, (NATS,)
    figure = "probability"
    maps = TaskMaps("graph")

    def __init__(self, graph: Graph, parts: Mapping[str, np.ndarray]):
        self.graph, self.parts = graph, parts
        self.shape = NodeClasses(len(graph.labels), graph.features, len(graph.classes))
        self.notes = (*graph.notes, *_absent(graph, parts))
        self._order = Buckets(np.ones(len(parts["train"]), np.int64), count=1)
        self._at = {name: n for n, name in enumerate(graph.names)}
        digest = hashlib.sha256(graph.fingerprint.encode())
        for name in PARTS:
            digest.update(f"{name} {len(parts[name])} ".encode() + parts[name].astype("<i4").tobytes())
        self.fingerprint = digest.hexdigest()

    def batch(self, seed: int, step: int, size: int) -> Batch:
        """Returns nodes whose class is known. Each occurs once in an epoch."""
        rows, _ = self._order.batch(seed, step, size)
        return self._node_batch(self.parts["train"][rows])

    def loss(
        self, model: NodeClassifier, batch: Batch, key: PRNGKeyArray | None
    ) -> tuple[Float[Array, ""], dict[str, Array]]:
        """Computes the cross-entropy in nats plus the model's penalty.

        Returns:
            The sum, and {"nats", "accuracy"}: the means over the scored nodes.
        """
        import jax.numpy as jnp

        answer = self._tell(model, batch, key)
        labelled = jnp.asarray(batch["label"]) >= 0
        count = jnp.maximum(labelled.sum(), 1).astype(answer["nats"].dtype)
        nats, accuracy = (jnp.where(labelled, answer[name], 0).sum() / count for name in ("nats", "right"))
        return nats + model.penalty().astype(nats.dtype), {"nats": nats, "accuracy": accuracy}

    def answer(self, model: NodeClassifier, batch: Batch) -> Batch:
        """Returns {"label", "probability", "nats", "right": [B]}.

        "label" is the most probable class. "nats" is the cost of the correct class. "right" is 1 if the prediction is
        correct.
        """
        return self._tell(model, batch, None)

    def eval_batches(self, part: str, limit: int | None = None) -> list[Batch]:
        """Returns batches of up to 1,024 nodes."""
        # The rows that fill up the last batch are node 0 with an unknown label, which is not scored.
        return equal_batches(self._node_batch(self._examined(part, limit)), EXAMINED, label=UNKNOWN)

    def score(self, part: str, answers: list[Batch], limit: int | None = None) -> dict[str, float]:
        """Returns {"accuracy", "nats"}: the means over the nodes whose class is known, or {} if there are none."""
        known = self.graph.labels[self._examined(part, limit)] != UNKNOWN
        values = {
            metric: np.concatenate([np.asarray(answer[name], np.float64) for answer in answers])[: len(known)][known]
            for metric, name in (("accuracy", "right"), ("nats", "nats"))
        }
        return {metric: float(value.mean()) for metric, value in values.items()} if known.any() else {}

    def with_test(self, graph: Graph, path: str) -> NodeData:
        """Returns the data with another graph, all of whose nodes are the test part.

        A model must be built for the `shape` of the result. If the graph is the one that was trained on, its own test
        nodes are the test part.

        Args:
            graph: The other graph.
            path: The path of its file, for messages.

        Raises:
            DataError: If the number of features differs, or if a class does not occur in training.
        """
        found = copy(self)
        found.notes = (f"{path} is the training graph; its own test nodes are evaluated",)
        if graph.fingerprint == self.graph.fingerprint:
            return found
        if graph.features != self.graph.features:
            expected = f"but the model expects {self.graph.features:,}"
            raise DataError(f"{path}: the nodes have {graph.features:,} features, {expected}")
        known = {name: n for n, name in enumerate(self.graph.classes)}
        for n in np.unique(graph.labels[graph.labels != UNKNOWN]):
            if (name := graph.classes[n]) not in known:
                node, shown = graph.names[int(np.argmax(graph.labels == n))], ", ".join(list(known)[:12])
                known_classes = f"the training classes are {shown}"
                raise DataError(
                    f"{path}: the class {name!r} of node {node!r} does not occur in training; {known_classes}"
                )
        ids = np.array([*(known.get(name, UNKNOWN) for name in graph.classes), UNKNOWN], np.int32)
        found.graph = replace(graph, labels=ids[graph.labels], classes=self.graph.classes)
        found.parts = {**self.parts, "test": np.arange(len(graph.labels), dtype=np.int32)}
        found.shape = NodeClasses(len(graph.labels), graph.features, len(self.graph.classes))
        found._at = {name: n for n, name in enumerate(graph.names)}
        known = _identities(self.graph, self.parts["train"])
        asked = _identities(graph, np.flatnonzero(graph.labels != UNKNOWN))
        found.notes = (*graph.notes, *repeated({"train": known, path: asked}, "nodes with a class"))
        return found

    def rows(self, part: str, answers: list[Batch], limit: int | None = None) -> list[Row]:
        """Returns each node by name, with its class, the predicted class and the probability of that."""
        predicted, chance = (
            np.concatenate([np.asarray(a[name]) for a in answers]) for name in ("label", "probability")
        )
        names, classes, labels = self.graph.names, self.graph.classes, self.graph.labels
        return [
            Row(
                names[node],
                classes[labels[node]] if labels[node] != UNKNOWN else None,
                classes[predicted[n]],
                float(chance[n]),
            )
            for n, node in enumerate(self._examined(part, limit))
        ]

    def count_scored(self, part: str, limit: int | None = None) -> int | None:
        """Returns the number of evaluated nodes."""
        return len(self._examined(part, limit))

    def encode_prompt(self, text: str) -> Batch:
        """Returns one node by its name.

        Raises:
            DataError: If the graph has no such node.
        """
        if (name := composed(text.strip())) not in self._at:
            first = ", ".join(self.graph.names[:3])
            raise DataError(f"the graph has no node {name!r}; it has {len(self._at):,} nodes, for example {first}")
        return self._node_batch(np.array([self._at[name]], np.int32))

    def format_answer(self, answer: Batch) -> str:
        """Returns the predicted class and its probability."""
        label, probability = (np.asarray(answer[name])[0] for name in ("label", "probability"))
        return f"{self.graph.classes[int(label)]} {probability:.2f}"

    def tokens(self, batch: Batch) -> dict[str, list[str]]:
        """Returns the node and its neighbours as "source", and its class, if known, as "target"."""
        node, graph = int(np.asarray(batch["node"])[0]), self.graph
        joined = graph.edges[graph.edges[:, 0] == node, 1]
        label = int(graph.labels[node])
        return {
            "source": [graph.names[n] for n in (node, *joined)],
            "target": [graph.classes[label]] if label != UNKNOWN else [],
        }

    def model_inputs(self, batch: Batch) -> tuple[np.ndarray | Array, ...]:
        """Returns the whole graph, which is the same for every batch."""
        return self.graph.edges, self.graph.entries, self.graph.values

    def map_rows(self, batch: Batch) -> list[int]:
        """Returns the nodes with the most neighbours, the median number and the fewest, each node once."""
        nodes = np.asarray(batch["node"])
        order = np.argsort(np.bincount(self.graph.edges[:, 0], minlength=self.shape.nodes)[nodes], kind="stable")
        return list(dict.fromkeys(int(order[place]) for place in (-1, len(order) // 2, 0)))

    def example(self, batch: Batch, answer: Batch | None = None) -> ModelExample:
        """Returns a node and its neighbours, each with its class if known, along both axes."""
        node, graph = int(np.asarray(batch["node"])[0]), self.graph
        near = [node, *graph.edges[graph.edges[:, 0] == node, 1].tolist()]
        known = [f" {graph.classes[graph.labels[n]]}" if graph.labels[n] != UNKNOWN else "" for n in near]
        words = [f"{graph.names[n]}{label}" for n, label in zip(near, known, strict=True)]
        return ModelExample(self.model_inputs(batch), {"graph": (words, words)}, tuple(near))

    @property
    def vocabulary(self) -> dict[str, object]:
        """The names of nodes and classes, as {"nodes": [names], "classes": [names]}."""
        return {"nodes": list(self.graph.names), "classes": list(self.graph.classes)}

    def _tell(self, model: NodeClassifier, batch: Batch, key: PRNGKeyArray | None) -> Batch:
        import jax
        import jax.numpy as jnp

        node, label = (jnp.asarray(batch[name]) for name in ("node", "label"))
        scores = model(self.graph.edges, self.graph.entries, self.graph.values, key=key)[node]
        logs = jax.nn.log_softmax(scores.astype(jnp.promote_types(scores.dtype, jnp.float32)), axis=1)
        predicted = jnp.argmax(logs, axis=1)
        of = lambda label: jnp.take_along_axis(logs, label[:, None], axis=1)[:, 0]
        return {
            "label": predicted,
            "probability": jnp.exp(of(predicted)),
            "nats": -of(jnp.maximum(label, 0)),
            "right": (predicted == label).astype(logs.dtype),
        }

    def _node_batch(self, nodes: np.ndarray) -> Batch:
        return {"node": nodes.astype(np.int32), "label": self.graph.labels[nodes]}

    def _examined(self, part: str, limit: int | None) -> np.ndarray:
        check_part(part, limit)
        nodes = self.parts[part]
        return nodes[sampled(len(nodes), limit)]


def _identities(graph: Graph, nodes: np.ndarray) -> list[tuple[str, bytes, bytes]]:
    """Returns the name and the features of each node, by which it is recognised in another graph."""
    starts = np.searchsorted(graph.entries[:, 0], np.arange(len(graph.labels) + 1))
    own = [slice(starts[n], starts[n + 1]) for n in nodes]
    return [
        (graph.names[n], graph.entries[rows, 1].tobytes(), graph.values[rows].tobytes())
        for n, rows in zip(nodes, own, strict=True)
    ]


def _absent(graph: Graph, parts: Mapping[str, np.ndarray]) -> list[str]:
    """Returns a message for each part that lacks a class."""
    notes = []
    for part in PARTS:
        lacking = np.setdiff1d(np.arange(len(graph.classes)), graph.labels[parts[part]])
        if len(lacking):
            names = ", ".join(graph.classes[n] for n in lacking[:5])
            end = "; the model cannot predict them" if part == "train" else ""
            notes.append(f"{part}: {len(lacking)} of {len(graph.classes)} classes have no node ({names}){end}")
    return notes
