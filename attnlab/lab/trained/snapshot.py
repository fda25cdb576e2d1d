"""Attention maps of a trained model on a few test examples."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from attnlab.analysis.maps import attention_maps
from attnlab.data.text.vocabulary import PAD
from attnlab.lab.trained.example import axis, inputs, leading_symbols, places
from attnlab.tasks.base.task import Batch, Pairs, TaskData, Tokens
from attnlab.tasks.vision.objects import SURE, Detections

FIRST = 8  # the first test examples, from which `snapshots` selects
WIDEST = 128  # positions kept of a map, because its size grows with their square for every head
LARGEST = 2**26  # the largest number of weights in all maps of one example


def snapshots(config: Any, model: Any, problem: TaskData) -> dict[str, Any] | None:
    """Compute the attention maps of a trained model on three test examples, as stored in `maps.json`.

    Which maps are computed depends on the problem:

    - Pairs of sequences: the cross-attention on the longest, the median and the shortest of the first eight examples.
    - Classification of sequences: the encoder's self-attention.
    - Language modeling: the decoder's self-attention.
    - Generation of images: the generator's self-attention over image positions.
    - Object detection: the attention of the queries to the image.
    - Graphs: the attention between a node and its neighbours, for three nodes.

    A map keeps its first `WIDEST` positions.

    Returns:
        {"kind": "cross" | "encoder" | "decoder" | "image" | "graph", "examples": [{"source", "target" (symbols),
        "layers" [L][H][T][S]}, ...]}, or None if the model has no such attention or its maps are too large.
    """
    if hasattr(problem.shape, "nodes"):
        return _around(model, problem)
    if not getattr(config, "attentions", None):
        # A user-defined model need not have `attentions`.
        return None
    if hasattr(problem.shape, "source"):
        batch = problem.eval_batches("test", FIRST)[0]
        rows = range(min(3, len(batch["source"])))
        examples = [one for row in rows if (one := _within(config, model, problem, batch, row)) is not None]
        return {"kind": "encoder", "examples": examples} if examples else None
    if hasattr(problem.shape, "latent"):
        return _making(config, model, problem)
    if isinstance(problem.shape, Detections) and hasattr(config, "grid"):
        return _finding(config, model, problem)
    if isinstance(problem.shape, Tokens):
        return _along(config, model, problem)
    return _between(config, model, problem) if isinstance(problem.shape, Pairs) else None


def _within(config: Any, model: Any, problem: TaskData, batch: Batch, row: int) -> dict[str, Any] | None:
    """Compute the encoder's maps of one row of a batch, or return None if there are none or they are too large."""
    one = {name: np.asarray(values)[row : row + 1] for name, values in batch.items()}
    keep = one.get("keep")
    source = jnp.asarray(one["source"])[0], None if keep is None else jnp.asarray(keep)[0]
    like = jax.eval_shape(lambda: attention_maps(model, *source)).get("encoder")
    if like is None or like.size > LARGEST:
        return None
    maps = np.asarray(attention_maps(model, *source)["encoder"], np.float64)
    own = leading_symbols(model)
    count = maps.shape[-1] if keep is None else len(own) + int(keep.sum())
    symbols = axis([*own, *problem.tokens(one)["source"]][: None if keep is None else count], count, model)[:WIDEST]
    count = len(symbols)
    return {"source": symbols, "target": symbols, "layers": np.round(maps[:, :, :count, :count], 4).tolist()}


def _along(config: Any, model: Any, problem: TaskData) -> dict[str, Any] | None:
    """Compute the decoder's self-attention on three examples. Truncation changes no weight, because it is causal."""
    batch, found = problem.eval_batches("test", FIRST)[0], []
    for row in range(min(3, len(batch["tokens"]))):
        tokens = np.asarray(batch["tokens"])[row : row + 1, :WIDEST]
        symbols = problem.tokens({**batch, "tokens": tokens, "source": tokens})["source"]
        count = len(symbols)
        maps = attention_maps(model, jnp.asarray(tokens[0, :count]))["decoder"]
        if maps is None:
            return None
        layers = np.round(np.asarray(maps, np.float64), 4)
        found.append({"source": symbols, "target": symbols, "layers": layers.tolist()})
    return {"kind": "decoder", "examples": found}


def _making(config: Any, model: Any, problem: TaskData) -> dict[str, Any] | None:
    """Compute the self-attention of an image generator for the first three latents of the test set."""
    size, found = problem.shape.image, []
    words = places(size.width // 2, size.height // 2)[:WIDEST]
    count = len(words)
    for latent in np.asarray(problem.eval_batches("test", FIRST)[0]["latent"])[:3]:
        maps = np.asarray(attention_maps(model, jnp.asarray(latent))["image"], np.float64)
        found.append({"source": words, "target": words, "layers": np.round(maps[:, :, :count, :count], 4).tolist()})
    return {"kind": "image", "examples": found}


def _finding(config: Any, model: Any, problem: Any) -> dict[str, Any]:
    """Compute the attention of the queries to the first three test images. A query is named by the object it found."""
    batch, found = problem.eval_batches("test", FIRST)[0], []
    answer = jax.jit(problem.answer)(model, batch)
    for row, image in enumerate(inputs(problem, batch)[0][:3]):
        maps = np.asarray(attention_maps(model, jnp.asarray(image))["cross"], np.float64)
        label, score = (np.asarray(answer[name][row]).tolist() for name in ("label", "score"))
        asked = [
            f"{n} {problem.classes[kind]}" if sure >= SURE else str(n)
            for n, (kind, sure) in enumerate(zip(label, score, strict=True), start=1)
        ]
        layers = np.round(maps[:, :, :WIDEST, :WIDEST], 4).tolist()
        rows, columns = config.grid(*image.shape[:2])
        found.append({"source": places(columns, rows)[:WIDEST], "target": asked[:WIDEST], "layers": layers})
    return {"kind": "cross", "examples": found}


def _around(model: Any, problem: Any) -> dict[str, Any] | None:
    """Compute the attention between three test nodes and their neighbours.

    All layers with as many heads as the first are included. Returns None if the layers compute no attention weights.
    """
    graph, nodes = problem.graph, problem.eval_batches("test", FIRST)[0]["node"][:FIRST]
    if not all(hasattr(layer, "weights") for layer in model.stack.layers):
        return None
    ends, found = model.weights(graph.edges, graph.entries, graph.values)
    found = [np.asarray(each, np.float64) for each in found if each.shape == found[0].shape]
    order = nodes[np.argsort(np.bincount(graph.edges[:, 0], minlength=ends.T)[nodes], kind="stable")]
    examples = []
    for node in dict.fromkeys(int(order[place]) for place in (-1, len(order) // 2, 0)):
        near = np.concatenate([[node], graph.edges[graph.edges[:, 0] == node, 1]])[:WIDEST]
        row = np.full(ends.T, -1)
        row[near] = np.arange(len(near))
        t, s = row[ends.t], row[ends.s]
        inside = (t >= 0) & (s >= 0)
        layers = np.zeros((len(found), found[0].shape[1], len(near), len(near)))
        for n, weights in enumerate(found):
            layers[n, :, t[inside], s[inside]] = weights[inside]
        words = [_node(graph, n) for n in near.tolist()]
        examples.append({"source": words, "target": words, "layers": np.round(layers, 4).tolist()})
    return {"kind": "graph", "examples": examples}


def _node(graph: Any, node: int) -> str:
    """Return a node's name, followed by its class if known."""
    label = int(graph.labels[node])
    return graph.names[node] if label < 0 else f"{graph.names[node]} {graph.classes[label]}"


def _between(config: Any, model: Any, problem: TaskData) -> dict[str, Any] | None:
    """Compute the cross-attention on the longest, the median and the shortest of a few test examples."""
    batch = problem.eval_batches("test", FIRST)[0]
    order = np.argsort(np.sum(np.asarray(batch["source"])[:FIRST] != PAD, axis=1), kind="stable")
    answers, found = jax.jit(problem.answer), []
    for row in dict.fromkeys(int(order[place]) for place in (-1, len(order) // 2, 0)):
        one = {name: values[row : row + 1] for name, values in batch.items()}
        maps = snapshot(config, model, problem, one, answers(model, one))
        if maps is None:
            return None
        found.append(maps)
    return {"kind": "cross", "examples": found}


def snapshot(config: Any, model: Any, problem: TaskData, batch: Batch, answer: Batch) -> dict[str, Any] | None:
    """Compute the cross-attention of row 0 of a batch, teacher-forced on the model's own answer.

    Returns:
        {"source", "target" (symbols), "layers" [L][H][T][S]}, or None if the model has no cross-attention.
    """
    if not getattr(config, "attentions", None):
        return None
    pair = {"source": np.asarray(batch["source"])[:1], "target": np.asarray(answer["tokens"])[:1]}
    maps = attention_maps(model, *(jnp.asarray(x[0]) for x in inputs(problem, pair)))["cross"]
    if maps is None:
        return None
    symbols = problem.tokens(pair)
    T, S = len(symbols["target"]), len(symbols["source"])
    layers = np.round(np.asarray(maps, np.float64)[:, :, :T, :S], 4)
    return {**symbols, "layers": layers.tolist()}
