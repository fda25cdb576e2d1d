"""One example for inspecting a trained model: teacher-forced inputs, and the symbols along the axes of the maps."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from attnlab.analysis.maps import attention_maps
from attnlab.data.text.marks import SHOWN
from attnlab.data.text.vocabulary import BEGIN, PAD
from attnlab.lab.trained.decoding import Answerer, DivergedError, one_line
from attnlab.lab.trained.load import Trained
from attnlab.tasks.base.task import Batch, Pairs, Tokens
from attnlab.tasks.vision.objects import Detections

START = SHOWN[BEGIN]  # what a decoder reads before the first symbol
CLASS = "[class]"  # the class token in front of all symbols, whose output classifies the sequence


@dataclass(frozen=True)
class TeacherForcedExample:
    """One example: the inputs of a model, the answer it is forced to, and the symbols along the axes of the maps."""

    answer: str
    """The answer of the model, as text."""
    inputs: tuple[np.ndarray, ...]
    """The model's inputs, without a batch axis."""
    axes: dict[str, tuple[list[str], list[str]]]
    """The symbols (rows, columns) by the name of the attention.

    Rows are the queries: what is written or the positions themselves. Columns are what is read. Padding follows the
    symbols and is not included.
    """


def check(run: str | Path, found: Trained) -> None:
    """Check that the model of a run has attention maps.

    Raises:
        ValueError: It has none. The message names the run.
    """
    config, shape = found.experiment.model, found.problem.shape
    if not (isinstance(shape, Pairs | Tokens | Detections) or hasattr(shape, "source") or hasattr(shape, "latent")):
        kinds = "models of sequences, classification, detection and image generation"
        page = "; its report shows the attention between nodes" if hasattr(shape, "nodes") else ""
        raise ValueError(f"{run}: {type(config).__name__} has no attention maps; only {kinds} have them{page}")
    if not getattr(config, "attentions", None):
        raise ValueError(f"{run}: the model has no attention, so there are no maps to show")


def inputs(problem: Any, batch: Batch) -> tuple[np.ndarray, ...]:
    """Return the inputs of a model for a batch, as the problem's loss passes them, with the leading batch axis."""
    shape = problem.shape
    if isinstance(shape, Detections):
        return (np.asarray(problem.given(batch)),)
    if hasattr(shape, "latent"):
        return (np.asarray(batch["latent"]),)
    if hasattr(shape, "source"):
        source = np.asarray(batch["source"])
        keep = batch.get("keep")
        return (source,) if keep is None else (source, np.asarray(keep))
    if isinstance(shape, Tokens):
        tokens = np.asarray(batch["tokens"], np.int32)
        return tokens, np.ones(tokens.shape, bool)
    source, target = (np.asarray(batch[name], np.int32) for name in ("source", "target"))
    given = np.concatenate([np.full((len(target), 1), BEGIN, np.int32), target[:, :-1]], axis=1)
    return source, given, source != PAD, target != PAD


def forced(found: Trained, text: str) -> TeacherForcedExample:
    """Return `text` and the model's own answer to it as one teacher-forced example.

    The answer is decoded as it was for the test.

    Raises:
        DataError: The text has symbols that were not seen in training.
        DivergedError: The model returns NaN.
    """
    problem, batch = found.problem, found.problem.encode_prompt(text)
    if problem.continues:
        return _continued(found, batch)
    if not isinstance(problem.shape, Pairs):
        text = problem.format_answer(jax.jit(problem.answer)(found.model, batch))
        if hasattr(problem.shape, "latent"):
            # The first line is the answer. The following lines draw the image.
            words = places(problem.shape.image.width // 2, problem.shape.image.height // 2)
            return TeacherForcedExample(
                text.partition("\n")[0], _first(inputs(problem, batch)), {"image": (words, words)}
            )
        answer = one_line(text)
        if isinstance(problem.shape, Detections):
            return _found(found, answer, inputs(problem, batch))
        words = [*leading_symbols(found.model), *problem.tokens(batch)["source"]]
        name = "decoder" if isinstance(problem.shape, Tokens) else "encoder"
        return TeacherForcedExample(answer, _first(inputs(problem, batch)), {name: (words, words)})
    best = Answerer(found)(batch["source"], np.ones(1))[0][0]
    if np.isnan(best.score):
        raise DivergedError("the model returned non-finite values for this input")
    # A decoder writes no special token but the end symbol, so every token has a symbol.
    batch = batch | {"target": best.tokens[None]}
    source, written = (problem.tokens(batch)[side] for side in ("source", "target"))
    axes = {
        "encoder": (source, source),
        "decoder": (written, [START, *written[:-1]]),
        "cross": (written, source),
    }
    return TeacherForcedExample(best.text, _first(inputs(problem, batch)), axes)


def _continued(found: Trained, batch: Batch) -> TeacherForcedExample:
    """Return the example for a model that continues a text: the end of it that fits a block, and the continuation."""
    problem = found.problem
    answer = Answerer(found)(batch["source"], np.ones(1))[0][0]
    if np.isnan(answer.score):
        raise DivergedError("the model returned non-finite values for this input")
    tokens = batch["source"][:, -problem.shape.length :]
    words = problem.tokens({"source": tokens})["source"]
    return TeacherForcedExample(
        one_line(answer.text), _first(inputs(problem, {"tokens": tokens})), {"decoder": (words, words)}
    )


def _found(found: Trained, answer: str, given: tuple[np.ndarray, ...]) -> TeacherForcedExample:
    """Return the example for object detection: image positions by row and column, and queries by number."""
    given = _first(given)
    maps = jax.eval_shape(lambda: attention_maps(found.model, *map(jnp.asarray, given)))
    rows, columns = found.experiment.model.grid(*given[0].shape[:2])
    positions = places(columns, rows)
    queries = [str(n + 1) for n in range(maps["cross"].shape[-2])]
    return TeacherForcedExample(
        answer,
        given,
        {"encoder": (positions, positions), "among": (queries, queries), "cross": (queries, positions)},
    )


def places(columns: int, rows: int) -> list[str]:
    """Return the names of an image's positions, row by row: "1,1", "1,2"."""
    return [f"{row},{column}" for row in range(1, rows + 1) for column in range(1, columns + 1)]


def leading_symbols(model: Any) -> list[str]:
    """Return the symbols that a model puts in front of its input: the class token, if it has one."""
    return [] if getattr(model, "token", None) is None else [CLASS]


def axis(symbols: list[str], count: int, model: Any) -> list[str]:
    """Return the symbols along an axis of `count` positions, or numbers if the model reads, for example, patches."""
    if len(symbols) == count:
        return symbols
    own = leading_symbols(model)
    return [*own, *(str(n) for n in range(1, count - len(own) + 1))]


def _first(given: tuple[np.ndarray, ...]) -> tuple[np.ndarray, ...]:
    return tuple(x[0] for x in given)
