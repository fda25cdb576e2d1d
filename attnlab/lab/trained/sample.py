"""Decode one text with a trained model, for a person to read: the answers and the attention map."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jax
import numpy as np

from attnlab.console.escape import plain
from attnlab.console.shade import draw
from attnlab.decoding import Beam, Search
from attnlab.lab.trained.decoding import Answerer, DecodingOptions, DivergedError
from attnlab.lab.trained.load import Step, Trained, trained, unfinished
from attnlab.lab.trained.snapshot import snapshot
from attnlab.tasks.base.text_interface import Batch, TextInterface, is_continued, is_decoded


def sample(
    run: str | Path, text: str, options: DecodingOptions = DecodingOptions(), step: Step = None
) -> dict[str, Any]:
    """Decode `text` with the trained model of a run.

    Random draws are the same as those of `translate` for a first line with this text.

    Args:
        run: The run folder.
        text: The input.
        options: How to decode, for example `DecodingOptions(beam=5, best=3)`. By default the run's own decoder is used.
        step: Which checkpoint to load, as in `load`.

    Returns:
        A dict with

        - "answer": the best answer as text.
        - "answers": every `Answer`, the best first. It is empty if the task is not decoded symbol by symbol.
        - "decoder": the decoder that was used, or None.
        - "cut": whether the answer should have ended with an end symbol and did not.
        - "notes": lines about the run and about how the text was read.
        - "source", "target": the symbols of the input and of the best answer.
        - "map": the cross-attention `[T][S]` of the last layer for the best answer, averaged over heads, or None.
        - "layers": the cross-attention `[L][H][T][S]` of all layers, or None.

        The last two are None if the model has no cross-attention or the task is not decoded symbol by symbol.

    Raises:
        DataError: The text has symbols that were not seen in training.
        DivergedError: The model returns NaN.
        ValueError: `options` sets options of decoding for a task that is not decoded.
    """
    found = trained(run, step, data=False)
    options.check(found.problem)
    early = unfinished(run, found, found.step) if step is None else []
    batch = found.problem.encode_prompt(text)
    if not is_decoded(found.problem):
        answer = jax.jit(found.problem.answer)(found.model, batch)
        answered = {
            "answer": found.problem.format_answer(answer),
            "answers": [],
            "decoder": None,
            "cut": False,
            "notes": early,
        }
        return {**answered, **found.problem.tokens(batch), "map": None, "layers": None}
    decoded = _decoded(found, batch, options)
    return {**decoded, "notes": [*early, *decoded["notes"]]}


def _decoded(found: Trained, batch: Batch, options: DecodingOptions) -> dict[str, Any]:
    """Decode a batch of one, and return the entries of `sample` that depend on it."""
    answerer = Answerer(found, options)
    answers = (
        answerer(batch["source"], np.ones(1))[0]
        if options.length is None
        else [answerer.on(batch["source"][0], options.length)]
    )
    if np.isnan(answers[0].score):
        raise DivergedError("the model returned non-finite values for this input")
    best = {"tokens": answers[0].tokens[None]}
    problem = found.problem
    answered = {"answer": answers[0].text, "answers": answers, "decoder": answerer.decoder}
    answered["cut"] = problem.decodes and not answers[0].finished
    answered["notes"] = _notes(problem, batch)
    # A model that continues a text has no cross-attention to show.
    seen = snapshot(found.experiment.model, found.model, problem, batch, best) if problem.decodes else None
    if seen is None:
        symbols = problem.tokens({"source": batch["source"], "target": best["tokens"]})
        return {**answered, **symbols, "map": None, "layers": None}
    last = np.mean(np.asarray(seen["layers"][-1]), axis=0)
    shown = {name: seen[name] for name in ("source", "target", "layers")}
    return {**answered, **shown, "map": last.tolist()}


def _notes(problem: TextInterface, batch: Batch) -> list[str]:
    """Return a note if the model reads only the end of the text."""
    given = batch["source"].shape[1]
    if not is_continued(problem) or given <= problem.reads:
        return []
    block = problem.shape.length
    return [f"the model reads only the last {problem.reads} of the {given} symbols, half of its block of {block}"]


def lines(found: dict[str, Any], width: int | None = None) -> list[str]:
    """Format what `sample` returned for a terminal.

    The lines hold the best answer, then all answers with their scores if there are several, then the attention map.

    Args:
        found: The dict that `sample` returned.
        width: The width of the terminal in columns. None sets no limit.
    """
    shown = [plain(line) for line in found["answer"].split("\n")]
    if found["cut"] and len(found["answers"]) == 1:
        shown = [*shown[:-1], f"{shown[-1]} …", UNFINISHED]
    if len(found["answers"]) > 1:
        wide = len(str(len(found["answers"])))
        ranked = enumerate(found["answers"], start=1)
        shown += ["", scored(found["decoder"])]
        shown += [
            f"{n:>{wide}}  {round(answer.score, 3) + 0.0:9.3f}  {plain(answer.text)}{'' if answer.finished else ' …'}"
            for n, answer in ranked
        ]
        if not all(answer.finished for answer in found["answers"]):
            shown += [UNFINISHED]
    if found["map"] is not None:
        shown += ["", *draw(found["source"], found["target"], found["map"], width)]
    return shown


UNFINISHED = "… marks an answer cut off at the maximum length"


def scored(decoder: Search) -> str:
    """Describe the scores of a decoder's answers in words."""
    penalty = decoder.penalty if isinstance(decoder, Beam) else 0
    divided = f", divided by ((5 + tokens) / 6)^{penalty:g}" if penalty else ""
    return f"log-probability in nats{divided}"
