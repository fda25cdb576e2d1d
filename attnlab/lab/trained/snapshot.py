"""Attention maps of a trained model on a few test examples."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, TypedDict, runtime_checkable

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PyTree

from attnlab.analysis.maps import attention_maps
from attnlab.lab.trained.example import GridConfig, TeacherForcedExample, attentions, axis, observed, symbols
from attnlab.ops.edges import EdgeIndex
from attnlab.tasks.base.example import ImageAxis, ModelExample
from attnlab.tasks.base.task import TaskData
from attnlab.tasks.base.text_interface import Batch, TextInterface

FIRST = 8  # the first test examples, from which the task selects
WIDEST = 128  # positions kept of a map, because its size grows with their square for every head
LARGEST = 2**26  # the largest number of weights in all maps of one example


class Snapshot(TypedDict):
    """The maps of one example."""

    source: list[str]
    """The symbols along the columns."""
    target: list[str]
    """The symbols along the rows."""
    layers: list[list[list[list[float]]]]
    """The maps `[L][H][T][S]`."""


class Snapshots(TypedDict):
    """The maps of a run, as stored in `maps.json`."""

    kind: str
    """The kind of the maps: "cross", "encoder", "decoder", "image" or "graph"."""
    examples: list[Snapshot]
    """The maps of up to three examples."""


@runtime_checkable
class EdgeWeights(Protocol):
    """A layer of a graph network that computes attention weights."""

    def weights(self, x: Array, ends: EdgeIndex) -> Float[Array, "E H"]:
        """Return the weight of each edge."""
        ...


def snapshots(config: object, model: PyTree, problem: TaskData, answers: Callable[[int], Batch]) -> Snapshots | None:
    """Compute the attention maps of a trained model on three test examples, as stored in `maps.json`.

    The task says which maps are computed and on which of the first eight examples:

    - Pairs of sequences: the cross-attention on the longest, the median and the shortest.
    - Classification of sequences: the encoder's self-attention.
    - Language modeling: the decoder's self-attention.
    - Generation of images: the generator's self-attention over image positions.
    - Object detection: the attention of the queries to the image.
    - Graphs: the attention between a node and its neighbours, for three nodes.

    A map keeps its first `WIDEST` positions, except that of a pair, which is whole.

    Args:
        config: The configuration of the model.
        model: The trained model.
        problem: The data of the task.
        answers: Returns the model's answers to a number of test examples, the first ones.

    Returns:
        The maps, or None if the model has no such attention or its maps are too large.
    """
    if problem.maps is None:
        return None
    examples = []
    batch = {name: np.asarray(values)[:FIRST] for name, values in problem.eval_batches("test", FIRST)[0].items()}
    answered = answers(FIRST) if problem.maps.answered and attentions(config) else None
    for row in problem.map_rows(batch):
        only = lambda x, row=row: x[row : row + 1]
        one = {name: only(values) for name, values in batch.items()}
        if problem.maps.kind == "graph":
            maps = _neighbours(model, problem.example(one))
        elif attentions(config):
            answer = None if answered is None else {name: only(x) for name, x in answered.items()}
            maps = snapshot(config, model, problem, one, answer)
        else:
            maps = None
        if maps is None:
            return None
        examples.append(maps)
    return {"kind": problem.maps.kind, "examples": examples} if examples else None


def snapshot(
    config: object, model: PyTree, problem: TextInterface, batch: Batch, answer: Batch | None = None
) -> Snapshot | None:
    """Compute the attention map of a batch of size 1 that the task shows, teacher-forced on the model's own answer.

    Args:
        config: The configuration of the model.
        model: The trained model.
        problem: The text interface of the task.
        batch: The input.
        answer: The model's answer to it, or None for tasks whose maps need none.

    Returns:
        The maps, or None if the model has no such attention or its maps are too large.
    """
    shown = problem.maps
    if shown is None or not attentions(config):
        return None
    example = problem.example(batch, answer)
    if ImageAxis in map(type, example.axes[shown.attention]) and not isinstance(config, GridConfig):
        return None
    # Truncation changes no weight of a decoder, because it is causal.
    inputs = tuple(jnp.asarray(x)[: WIDEST if shown.kind == "decoder" else None] for x in example.inputs)
    like = jax.eval_shape(lambda: attention_maps(model, *inputs)).get(shown.attention)
    if like is None or like.size > LARGEST:
        return None
    sides = symbols(config, model, example.axes[shown.attention])
    maps = observed(model, TeacherForcedExample("", inputs, {shown.attention: sides}))[shown.attention]
    rows, columns = (axis(each[:count], count, model) for each, count in zip(sides, maps.shape[-2:], strict=True))
    most = None if shown.whole else WIDEST
    return {
        "source": columns[:most],
        "target": (list(example.rows) or rows)[:most],
        "layers": np.round(maps[:, :, :most, :most], 4).tolist(),
    }


def _neighbours(model: PyTree, example: ModelExample) -> Snapshot | None:
    """Compute the attention between a node and its neighbours.

    All layers with as many heads as the first are included. Returns None if the layers compute no attention weights.
    """
    if not all(isinstance(layer, EdgeWeights) for layer in model.stack.layers):
        return None
    ends, found = model.weights(*example.inputs)
    found = [np.asarray(each, np.float64) for each in found if each.shape == found[0].shape]
    near = np.array(example.nodes[:WIDEST])
    row = np.full(ends.T, -1)
    row[near] = np.arange(len(near))
    t, s = row[ends.t], row[ends.s]
    inside = (t >= 0) & (s >= 0)
    layers = np.zeros((len(found), found[0].shape[1], len(near), len(near)))
    for n, weights in enumerate(found):
        layers[n, :, t[inside], s[inside]] = weights[inside]
    words = symbols(None, model, example.axes["graph"])[0][:WIDEST]
    return {"source": words, "target": words, "layers": np.round(layers, 4).tolist()}
