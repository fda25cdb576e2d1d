"""A trained run examined on other files: what its test is scored by, and the answers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import jax
import numpy as np

from attnlab.data import names
from attnlab.data.parallel import EMPTY
from attnlab.lab.answertable import lines
from attnlab.lab.loading import Restored, Step, lanes_of, restored, unfinished
from attnlab.lab.result import over_seeds
from attnlab.tasks.base import Problem, Row
from attnlab.training.trainer import Trainer


@dataclass(frozen=True)
class Scored:
    """A file on which a run was examined.

    `metrics` are as in `result.json`, by name {"mean", "low", "high", "values"} over `seeds`; none where the file holds
    inputs alone. `rows` has the examples by seed, each with that seed's answer; `figure` names their numbers. `notes`
    say what a person should know of how the file was read.
    """

    file: str
    seeds: tuple[int, ...]
    metrics: dict[str, dict[str, Any]]
    rows: Mapping[int, Sequence[Row]]
    figure: str
    notes: tuple[str, ...]

    @property
    def examples(self) -> int:
        """How many the file holds."""
        return max(map(len, self.rows.values()), default=0)


def score(run: str | Path, files: Sequence[str], step: Step = None, empty: str | None = None) -> list[Scored]:
    """Examine a trained run on files of the kind that its task reads, by every seed of its chosen learning rate.

    On the run's own test file the metrics are those of `result.json`. The task's data are loaded, for what the model is
    given depends on them. `step` is that of a checkpoint, as `load` takes it. `empty` says what becomes of lines with
    one empty side: "refuse", "skip" or, where None, as the task has it. Every file is read before any is answered.
    Raises ValueError where the task has no such lines, DataError, naming file and line, for what the model cannot be
    given, NotImplementedError where the task reads no files, and as `load`.
    """
    found = restored(run, step)
    early = unfinished(run, found, found.step) if step is None else []
    task = _reading(found.experiment.task, empty)
    problems = {file: task.with_test(found.problem, file) for file in map(str, files)}
    return [_scored(found, file, problem, early) for file, problem in problems.items()]


def _reading(task: Any, empty: str | None) -> Any:
    """The task, reading lines with one empty side so."""
    if empty is None:
        return task
    names.check("--empty", empty, EMPTY)
    if not hasattr(task, "empty"):
        raise ValueError(f"--empty {empty}: the files of {type(task).__name__} have no lines of two sides")
    return replace(task, empty=empty)


def table(scored: Sequence[Scored]) -> str:
    """The answers to all files as `attnlab.lab.answertable` writes them; of several, "file" is the first column."""
    return "".join(f"{line}\n" for line in lines({one.file: (one.rows, one.figure) for one in scored}))


def _scored(found: Restored, file: str, problem: Problem, notes: Sequence[str]) -> Scored:
    experiment, result = found.experiment, found.result or {}
    trainer = Trainer(lambda key: experiment.model.create(key, problem.shape), problem, experiment.train)
    model = found.models
    if problem.shape != found.problem.shape:
        model = _rebuilt(trainer, model)
    lanes = lanes_of(experiment, found.result, np.asarray(found.state.alive))
    # All lanes, those of other rates too: one program then answers as it did when the run was tested.
    answers = trainer.answers(model, "test", None, experiment.decoder)
    seeds = [experiment.train.lanes[n][0] for n in lanes]
    scores = [problem.score("test", answers[n]) for n in lanes]
    metrics = over_seeds(scores, problem, max(1, len(result.get("contenders") or [])))
    rows = {seed: problem.rows("test", answers[n]) for seed, n in zip(seeds, lanes, strict=True)}
    return Scored(file, tuple(seeds), metrics, rows, problem.figure, (*notes, *problem.notes))


def _rebuilt(trainer: Trainer, model: Any) -> Any:
    """The parameters of a model in one that is built for the trainer's problem, such as a graph of other nodes."""
    like = jax.eval_shape(trainer.start).model
    return jax.tree.unflatten(jax.tree.structure(like), jax.tree.leaves(model))
