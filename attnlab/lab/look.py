"""One example through a trained model: its answers, and where its attention went."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from attnlab.analysis.maps import maps
from attnlab.data.vocabulary import BEGIN, PAD
from attnlab.decoding import Beam, Decoder
from attnlab.lab.answering import Answerer, Asked, DivergedError
from attnlab.lab.forced import axis, front, places
from attnlab.lab.loading import Step, Trained, trained, unfinished
from attnlab.lab.shade import draw
from attnlab.lab.terminal import plain
from attnlab.tasks.base import Batch, Pairs, Problem, Tokens


def sample(run: str | Path, text: str, asked: Asked = Asked(), step: Step = None) -> dict[str, Any]:
    """What the trained model of a run makes of `text`, in the way asked for; what it draws is what `translate` draws
    for a first line of this text. `step` is that of a checkpoint, as `load` takes it.

    {"answer", "answers" (each an `Answer`, the best first), "decoder", "cut" (whether an answer that has an end came to
    none), "notes" (what a person should know of the run, and of how the text was read), "source", "target" (symbols of
    the best), "map" [T][S], "layers" [L][H][T][S]}. The map is the cross-attention of the last layer on the best
    answer, the mean over its heads; of a model without, both are None.
    What is not answered symbol by symbol has no "answers", no decoder and no map. Raises DataError for symbols never
    seen, DivergedError where the model answers NaN, ValueError for a way of decoding where nothing is decoded.
    """
    found = trained(run, step, data=False)
    asked.check(found.problem)
    early = unfinished(run, found, found.step) if step is None else []
    batch = found.problem.ask(text)
    if not (found.problem.decodes or found.problem.continues):
        answer = jax.jit(found.problem.answer)(found.model, batch)
        told = {"answer": found.problem.tell(answer), "answers": [], "decoder": None, "cut": False, "notes": early}
        return {**told, **found.problem.tokens(batch), "map": None, "layers": None}
    told = _decoded(found, batch, asked)
    return {**told, "notes": [*early, *told["notes"]]}


def _decoded(found: Trained, batch: Batch, asked: Asked) -> dict[str, Any]:
    answerer = Answerer(found, asked)
    answers = (
        answerer(batch["source"], np.ones(1))[0]
        if asked.length is None
        else [answerer.on(batch["source"][0], asked.length)]
    )
    if np.isnan(answers[0].score):
        raise DivergedError("the model's numbers are not finite on this input")
    best = {"tokens": answers[0].tokens[None]}
    problem = found.problem
    told = {"answer": answers[0].text, "answers": answers, "decoder": answerer.decoder}
    told["cut"] = problem.decodes and not answers[0].finished
    told["notes"] = _notes(problem, batch)
    # Of what is gone on with, nothing is read by another sequence.
    seen = look(found.experiment.model, found.model, problem, batch, best) if problem.decodes else None
    if seen is None:
        symbols = problem.tokens({"source": batch["source"], "target": best["tokens"]})
        return {**told, **symbols, "map": None, "layers": None}
    last = np.mean(np.asarray(seen["layers"][-1]), axis=0)
    shown = {name: seen[name] for name in ("source", "target", "layers")}
    return {**told, **shown, "map": last.tolist()}


def _notes(problem: Any, batch: Batch) -> list[str]:
    given = batch["source"].shape[1]
    if not problem.continues or given <= problem.reads:
        return []
    block = problem.shape.length
    return [f"of the {given} symbols given the last {problem.reads} are read, half of the model's block of {block}"]


def lines(found: dict[str, Any], width: int | None = None) -> list[str]:
    """What `sample` found, for a terminal so wide: the best answer, where there are several all of them, the map."""
    shown = [plain(line) for line in found["answer"].split("\n")]
    if found["cut"] and len(found["answers"]) == 1:
        shown = [*shown[:-1], f"{shown[-1]} …", UNFINISHED]
    if len(found["answers"]) > 1:
        wide = len(str(len(found["answers"])))
        ranked = enumerate(found["answers"], start=1)
        shown += ["", scored(found["decoder"])]
        shown += [
            f"{n:>{wide}}  {answer.score:9.3f}  {plain(answer.text)}{'' if answer.finished else ' …'}"
            for n, answer in ranked
        ]
        if not all(answer.finished for answer in found["answers"]):
            shown += [UNFINISHED]
    if found["map"] is not None:
        shown += ["", *draw(found["source"], found["target"], found["map"], width)]
    return shown


UNFINISHED = "…: cut off at the longest answer allowed"


def scored(decoder: Decoder) -> str:
    """What the scores of a decoder's answers are."""
    penalty = decoder.penalty if isinstance(decoder, Beam) else 0
    divided = f", divided by ((5 + tokens) / 6)^{penalty:g}" if penalty else ""
    return f"log-probability in nats{divided}"


FIRST = 8  # test examples, among which those of `looks` are; always the same
WIDEST = 128  # positions kept of a map of one sequence: its numbers are as many as its square, for every head
LARGEST = 2**26  # numbers of all maps of one example


def looks(config: Any, model: Any, problem: Problem) -> dict[str, Any] | None:
    """Where a trained model looks on the longest, a middling and the shortest of a few test examples: `maps.json`.

    {"kind": "cross" | "encoder" | "decoder" | "image" | "graph",
    "examples": [{"source", "target" (symbols), "layers" [L][H][T][S]}, ...]}.
    Of what reads and does not write, the encoder's, of what goes on with one sequence, its own, of what makes images
    those of the generator's places, of a graph those of a node and its neighbours, on three: their first `WIDEST`
    positions. None where the model has no such attention, or its maps are too large.
    """
    if hasattr(problem.shape, "nodes"):
        return _around(model, problem)
    if not getattr(config, "attentions", None):
        # A model of one's own need not know of any.
        return None
    if hasattr(problem.shape, "source"):
        batch = problem.examination("test", FIRST)[0]
        rows = range(min(3, len(batch["source"])))
        examples = [one for row in rows if (one := _within(config, model, problem, batch, row)) is not None]
        return {"kind": "encoder", "examples": examples} if examples else None
    if hasattr(problem.shape, "latent"):
        return _making(config, model, problem)
    if isinstance(problem.shape, Tokens):
        return _along(config, model, problem)
    return _between(config, model, problem) if isinstance(problem.shape, Pairs) else None


def _within(config: Any, model: Any, problem: Problem, batch: Batch, row: int) -> dict[str, Any] | None:
    """The encoder's maps on the beginning of an example of a batch; None where none are, or they are too large."""
    one = {name: np.asarray(values)[row : row + 1] for name, values in batch.items()}
    keep = one.get("keep")
    source = jnp.asarray(one["source"])[0], None if keep is None else jnp.asarray(keep)[0]
    like = jax.eval_shape(lambda: maps(config, model, problem.shape, *source)).get("encoder")
    if like is None or like.size > LARGEST:
        return None
    seen = np.asarray(maps(config, model, problem.shape, *source)["encoder"], np.float64)
    own = front(model)
    count = seen.shape[-1] if keep is None else len(own) + int(keep.sum())
    symbols = axis([*own, *problem.tokens(one)["source"]][: None if keep is None else count], count, model)[:WIDEST]
    count = len(symbols)
    return {"source": symbols, "target": symbols, "layers": np.round(seen[:, :, :count, :count], 4).tolist()}


def _along(config: Any, model: Any, problem: Problem) -> dict[str, Any] | None:
    """A decoder's maps of itself on a few test examples, as far as is drawn: what comes after changes none."""
    batch, found = problem.examination("test", FIRST)[0], []
    for row in range(min(3, len(batch["tokens"]))):
        tokens = np.asarray(batch["tokens"])[row : row + 1, :WIDEST]
        symbols = problem.tokens({**batch, "tokens": tokens, "source": tokens})["source"]
        count = len(symbols)
        seen = maps(config, model, problem.shape, jnp.asarray(tokens[0, :count]), jnp.ones(count, bool))["decoder"]
        if seen is None:
            return None
        layers = np.round(np.asarray(seen, np.float64), 4)
        found.append({"source": symbols, "target": symbols, "layers": layers.tolist()})
    return {"kind": "decoder", "examples": found}


def _making(config: Any, model: Any, problem: Problem) -> dict[str, Any] | None:
    """The maps of what makes images, on the first three of the test's latents."""
    size, found = problem.shape.image, []
    words = places(size.width // 2, size.height // 2)[:WIDEST]
    count = len(words)
    for latent in np.asarray(problem.examination("test", FIRST)[0]["latent"])[:3]:
        seen = np.asarray(maps(config, model, problem.shape, jnp.asarray(latent))["image"], np.float64)
        found.append({"source": words, "target": words, "layers": np.round(seen[:, :, :count, :count], 4).tolist()})
    return {"kind": "image", "examples": found}


def _around(model: Any, problem: Any) -> dict[str, Any] | None:
    """What nodes of the test take from their neighbours, and these from one another and from others not drawn.

    Of all layers that have as many heads as the first; None where neighbours do not weigh by what they are.
    """
    graph, nodes = problem.graph, problem.examination("test", FIRST)[0]["node"][:FIRST]
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
    """A node by its name and its class, where that is known."""
    label = int(graph.labels[node])
    return graph.names[node] if label < 0 else f"{graph.names[node]} {graph.classes[label]}"


def _between(config: Any, model: Any, problem: Problem) -> dict[str, Any] | None:
    """The cross-attention on the longest, a middling and the shortest of a few test examples."""
    batch = problem.examination("test", FIRST)[0]
    order = np.argsort(np.sum(np.asarray(batch["source"])[:FIRST] != PAD, axis=1), kind="stable")
    answers, found = jax.jit(problem.answer), []
    for row in dict.fromkeys(int(order[place]) for place in (-1, len(order) // 2, 0)):
        one = {name: values[row : row + 1] for name, values in batch.items()}
        seen = look(config, model, problem, one, answers(model, one))
        if seen is None:
            return None
        found.append(seen)
    return {"kind": "cross", "examples": found}


def look(config: Any, model: Any, problem: Problem, batch: Batch, answer: Batch) -> dict[str, Any] | None:
    """The cross-attention of row 0, teacher-forced on the model's own answer: {"source", "target", "layers"}.

    None where the model has none.
    """
    if not getattr(config, "attentions", None):
        return None
    source, target = np.asarray(batch["source"])[0], np.asarray(answer["tokens"])[0]
    given = np.concatenate([[BEGIN], target[:-1]]).astype(np.int32)
    seen = maps(config, model, problem.shape, *map(jnp.asarray, (source, given, source != PAD, target != PAD)))["cross"]
    if seen is None:
        return None
    symbols = problem.tokens({"source": source[None], "target": target[None]})
    T, S = len(symbols["target"]), len(symbols["source"])
    layers = np.round(np.asarray(seen, np.float64)[:, :, :T, :S], 4)
    return {**symbols, "layers": layers.tolist()}
