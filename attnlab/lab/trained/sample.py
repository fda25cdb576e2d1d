"""What a trained model makes of one text, for a person to read: its answers, and where its attention went."""

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
from attnlab.tasks.base.task import Batch


def sample(run: str | Path, text: str, asked: DecodingOptions = DecodingOptions(), step: Step = None) -> dict[str, Any]:
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
    batch = found.problem.encode_prompt(text)
    if not (found.problem.decodes or found.problem.continues):
        answer = jax.jit(found.problem.answer)(found.model, batch)
        told = {
            "answer": found.problem.format_answer(answer),
            "answers": [],
            "decoder": None,
            "cut": False,
            "notes": early,
        }
        return {**told, **found.problem.tokens(batch), "map": None, "layers": None}
    told = _decoded(found, batch, asked)
    return {**told, "notes": [*early, *told["notes"]]}


def _decoded(found: Trained, batch: Batch, asked: DecodingOptions) -> dict[str, Any]:
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
    seen = snapshot(found.experiment.model, found.model, problem, batch, best) if problem.decodes else None
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
            f"{n:>{wide}}  {round(answer.score, 3) + 0.0:9.3f}  {plain(answer.text)}{'' if answer.finished else ' …'}"
            for n, answer in ranked
        ]
        if not all(answer.finished for answer in found["answers"]):
            shown += [UNFINISHED]
    if found["map"] is not None:
        shown += ["", *draw(found["source"], found["target"], found["map"], width)]
    return shown


UNFINISHED = "…: cut off at the longest answer allowed"


def scored(decoder: Search) -> str:
    """What the scores of a decoder's answers are."""
    penalty = decoder.penalty if isinstance(decoder, Beam) else 0
    divided = f", divided by ((5 + tokens) / 6)^{penalty:g}" if penalty else ""
    return f"log-probability in nats{divided}"
