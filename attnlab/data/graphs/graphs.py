"""Graphs of nodes with features and classes: random graphs, and the division of nodes into parts."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from attnlab.data.io.files import DataError, lines, user_text
from attnlab.data.names import PARTS, composed
from attnlab.data.rng import generator

UNKNOWN = -1  # the label of a node without a class
MOST = 2**24  # the largest number of nodes or of features, so that a table of them fits into memory


@dataclass(frozen=True, eq=False)
class Graph:
    """A graph with nodes 0 … N−1, sparse features, and a class for each node."""

    edges: np.ndarray
    """The edges [E 2] int32, sorted. Each edge occurs once in each direction; no edge joins a node to itself."""
    entries: np.ndarray
    """The (node, feature) pairs of the features that are not zero [M 2] int32."""
    values: np.ndarray
    """The values of these features [M] float32. The absolute values of a node sum to one."""
    features: int
    """The number of features."""
    labels: np.ndarray
    """The class of each node [N] int32, −1 if it has none."""
    names: tuple[str, ...]
    """The name of each node."""
    classes: tuple[str, ...]
    """The name of each class."""
    notes: tuple[str, ...] = ()
    """What was changed in reading, for the user."""

    @property
    def fingerprint(self) -> str:
        """The sha256 of the whole graph, without its notes."""
        digest = hashlib.sha256(repr((self.features, self.names, self.classes)).encode())
        for array in (self.edges, self.entries, self.values, self.labels):
            digest.update(np.ascontiguousarray(array).tobytes())
        return digest.hexdigest()


def drawn(nodes: int, classes: int, seed: int) -> Graph:
    """Draws a stochastic block model (Holland et al. 1983) with noisy words as features, for trials without any data.

    A node has about six edges, of which about five lead to its own class. Each class has forty words. A node has about
    ten words; three are of its own class and the others of any class.

    Args:
      nodes: number of nodes.
      classes: number of classes.
      seed: seed of the graph.
    """
    random = generator(seed)
    labels = random.integers(classes, size=nodes).astype(np.int32)
    ours = [np.flatnonzero(labels == label) for label in range(classes)]
    ends = random.integers(nodes, size=(3 * nodes, 2))
    near = random.random(3 * nodes) < 0.8
    for n in np.flatnonzero(near):
        ends[n, 1] = random.choice(ours[labels[ends[n, 0]]])
    edges, _ = joined(ends[ends[:, 0] != ends[:, 1]], nodes)
    words = random.integers(40 * classes, size=(nodes, 10))
    words[:, :3] = random.integers(40, size=(nodes, 3)) + 40 * labels[:, None]
    entries = np.unique(np.stack([np.repeat(np.arange(nodes), 10), words.ravel()], axis=1), axis=0).astype(np.int32)
    values = shares(entries, np.ones(len(entries)), nodes)
    kinds = tuple(f"class {label}" for label in range(classes))
    return Graph(edges, entries, values, 40 * classes, labels, tuple(map(str, range(nodes))), kinds)


def divided(graph: Graph, each: int, valid: int, test: int, seed: int) -> dict[str, np.ndarray]:
    """Divides the nodes with a class into parts at random.

    Args:
      graph: the graph.
      each: number of training nodes of each class.
      valid: number of validation nodes, of any class.
      test: number of test nodes, of any class.
      seed: seed of the division.

    Returns:
      The nodes of each part, int32.

    Raises:
      DataError: if there are not enough nodes with a class.
    """
    random = generator(seed)
    order = random.permutation(len(graph.labels)).astype(np.int32)
    train = [order[graph.labels[order] == label][:each] for label in range(len(graph.classes))]
    asked = f"task.valid_examples={valid} and task.test_examples={test}"
    fewest = min(train, key=len)
    if len(fewest) < each:
        most = len(fewest)
        name = graph.classes[[len(of) for of in train].index(most)]
        first = f" (the first is node {fewest.min()})" if most else ""
        left = (graph.labels != UNKNOWN).sum() - most * len(train)
        then = f"; task.each={most} would leave {left} nodes for {asked}" if most else ""
        raise DataError(f"class {name!r} has {most} nodes{first}, fewer than task.each={each}{then}")
    rest = order[(graph.labels[order] != UNKNOWN) & ~np.isin(order, np.concatenate(train))]
    if len(rest) < valid + test:
        raise DataError(f"{len(rest)} nodes with a label are left for evaluation, too few for {asked}")
    return {"train": np.concatenate(train), "valid": rest[:valid], "test": rest[valid : valid + test]}


def split(graph: Graph, path: Path) -> dict[str, np.ndarray]:
    """Reads the division of nodes into parts from a file.

    A line is the name of a node, a tab and its part: train, valid or test. Nodes that are not listed are in no part.

    Args:
      graph: the graph.
      path: the file, gzipped if its name ends in .gz.

    Returns:
      The nodes of each part, int32.

    Raises:
      DataError: if a node does not exist, has no class, or is listed twice; the message names the line. Also if a part
        is empty, or all training nodes are of one class.
    """
    found: dict[str, list[int]] = {part: [] for part in PARTS}
    at, listed = {name: n for n, name in enumerate(graph.names)}, set()
    for number, line in enumerate(lines(user_text(path)), start=1):
        name, _, part = composed(line).partition("\t")
        if not line.strip():
            continue
        if part.strip() not in PARTS:
            raise DataError(f"{path}, line {number}: expected train, valid or test after a tab, got {part.strip()!r}")
        if name not in at:
            raise DataError(f"{path}, line {number}: the graph has no node {name!r}")
        if graph.labels[at[name]] == UNKNOWN or name in listed:
            problem = "is listed twice" if name in listed else "has no label"
            raise DataError(f"{path}, line {number}: node {name!r} {problem}")
        listed.add(name)
        found[part.strip()].append(at[name])
    if empty := [part for part in PARTS if not found[part]]:
        raise DataError(f"{path}: no node is in {empty[0]}")
    if len(labels := {int(graph.labels[node]) for node in found["train"]}) < 2:
        name = graph.classes[labels.pop()]
        raise DataError(f"{path}: all training nodes are of class {name!r}; at least 2 classes are needed")
    return {part: np.array(nodes, np.int32) for part, nodes in found.items()}


def joined(edges: np.ndarray, N: int) -> tuple[np.ndarray, tuple[str, ...]]:
    """Makes edges undirected: each once in both directions, without those from a node to itself.

    Args:
      edges: the edges [E 2].
      N: number of nodes.

    Returns:
      The edges, sorted, int32, and notes on the changes for the user.
    """
    loops = edges[:, 0] == edges[:, 1]
    given = np.unique(edges[~loops].reshape(-1, 2), axis=0)
    found = np.unique(np.concatenate([given, given[:, ::-1]]), axis=0).astype(np.int32)
    notes = []
    if single := len(found) - len(given):
        have = "edge has one direction only and is" if single == 1 else "edges have one direction only and are"
        notes.append(f"{single} {have} used in both directions")
    if looped := int(loops.sum()):
        are = "self-loop is" if looped == 1 else "self-loops are"
        notes.append(f"{looped} {are} removed; models add a self-loop to every node")
    if alone := N - len(np.unique(found)):
        have = "node has" if alone == 1 else "nodes have"
        notes.append(f"{alone} {have} no edge; such a node attends only to itself")
    return found, tuple(notes)


def shares(entries: np.ndarray, values: np.ndarray, N: int) -> np.ndarray:
    """Divides each value by the sum of the absolute values of its row.

    Values are first divided by the largest of their row, because the sum could overflow float64.

    Args:
        entries: The row and the column of each value [M 2].
        values: The values [M].
        N: The number of rows.

    Returns:
        The divided values [M], in float32.
    """
    rows, most = entries[:, 0], np.zeros(N)
    np.maximum.at(most, rows, np.abs(values))
    values = values / most[rows]
    return (values / np.bincount(rows, np.abs(values), N)[rows]).astype(np.float32)
