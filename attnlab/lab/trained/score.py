"""Score a trained run on other files: metrics as on the test set, and the answers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import Field, dataclass, replace
from pathlib import Path
from typing import ClassVar, Protocol, runtime_checkable

import jax
import numpy as np
from jaxtyping import PyTree

from attnlab.console.metric import Metric
from attnlab.data import names
from attnlab.data.text.corpus import EMPTY
from attnlab.lab.runs.answer_table import lines
from attnlab.lab.statistics import Summary, summaries
from attnlab.lab.trained.load import Restored, Step, lanes_of, restored, unfinished
from attnlab.tasks.base.task import Row, Task, TaskData
from attnlab.training.trainer import Trainer


@runtime_checkable
class TwoSidedTask(Protocol):
    """A task whose files have lines with two sides, one of which may be empty."""

    __dataclass_fields__: ClassVar[dict[str, Field]]
    empty: str


@dataclass(frozen=True)
class Scored:
    """The scores of a run on one file."""

    file: str
    """The file."""
    seeds: tuple[int, ...]
    """The seeds of the chosen learning rate that did not diverge."""
    metrics: Mapping[str, Summary]
    """The metrics as in `result.json`: {"mean", "low", "high", "values"} by name, with one value for each seed.

    It is empty if the file holds only inputs.
    """
    declared: Mapping[str, Metric]
    """The declarations of the metrics by name."""
    rows: Mapping[int, Sequence[Row]]
    """The examples by seed, each with that seed's answer."""
    figure: str
    """The name of the numbers in `rows`."""
    notes: tuple[str, ...]
    """Lines about the run and about how the file was read."""

    @property
    def examples(self) -> int:
        """The number of examples in the file."""
        return max(map(len, self.rows.values()), default=0)

    @property
    def scored(self) -> int:
        """The number of examples with an expected answer."""
        return max((sum(row.expected is not None for row in rows) for rows in self.rows.values()), default=0)


def score(run: str | Path, files: Sequence[str | Path], step: Step = None, empty: str | None = None) -> list[Scored]:
    """Score a trained run on files of the kind that its task reads, for every seed of its chosen learning rate.

    On the run's own test file the metrics equal those of `result.json`. The task's data are loaded, because the model's
    inputs depend on them. All files are read before the first is scored.

    Args:
        run: The run folder.
        files: The files.
        step: Which checkpoint to load, as in `load`.
        empty: What happens to lines with one empty side: "refuse" or "skip". None uses the task's setting.

    Returns:
        One `Scored` for each file.

    Raises:
        TypeError: `files` is a single file.
        ValueError: `empty` is given and the task's files have no two sides.
        DataError: A line is no valid input for the model. The message names the file and the line.
        NotImplementedError: The task reads no files.
        FolderError, CheckpointError: As in `load`.
    """
    if isinstance(files, str | Path):
        raise TypeError(f"files must be a list of files, got {str(files)!r}; pass [{str(files)!r}]")
    found = restored(run, step)
    early = unfinished(run, found, found.step) if step is None else []
    task = _reading(found.experiment.task, empty)
    problems = {file: task.with_test(found.problem, file) for file in map(str, files)}
    return [_scored(found, file, problem, early) for file, problem in problems.items()]


def _reading(task: Task, empty: str | None) -> Task:
    """Return the task with its setting for lines with one empty side replaced, if one is given."""
    if empty is None:
        return task
    names.check("--empty", empty, EMPTY)
    if not isinstance(task, TwoSidedTask):
        raise ValueError(
            f"--empty {empty} has no effect: the files of {type(task).__name__} have no lines with two sides"
        )
    return replace(task, empty=empty)


def table(scored: Sequence[Scored]) -> str:
    """Write the answers to all files as `answer_table` does. With several files, the first column is "file"."""
    return "".join(f"{line}\n" for line in lines({one.file: (one.rows, one.figure) for one in scored}))


def _scored(found: Restored, file: str, problem: TaskData, notes: Sequence[str]) -> Scored:
    """Score the run on one file."""
    experiment, result = found.experiment, found.result or {}
    trainer = Trainer(lambda key: experiment.model.create(key, problem.shape), problem, experiment.train)
    model = found.models
    if problem.shape != found.problem.shape:
        model = _rebuilt(trainer, model)
    lanes = lanes_of(experiment, found.result, np.asarray(found.state.alive))
    # All lanes are evaluated, also those of other rates, so that the program is the one that tested the run.
    answers = trainer.answers(model, "test", None, experiment.decoder)
    seeds = [experiment.train.lanes[n][0] for n in lanes]
    scores = [problem.score("test", answers[n]) for n in lanes]
    metrics = summaries(scores, problem.metric.name, problem.metric.higher, _contenders(result))
    rows = {seed: problem.rows("test", answers[n]) for seed, n in zip(seeds, lanes, strict=True)}
    declared = {name: problem.declared(name) for name in metrics}
    return Scored(file, tuple(seeds), metrics, declared, rows, problem.figure, (*notes, *problem.notes))


def _contenders(result: Mapping[str, object]) -> int:
    """Return the number of learning rates among which that of the run was chosen."""
    found = result.get("contenders")
    return len(found) if isinstance(found, list) and found else 1


def _rebuilt(trainer: Trainer, model: PyTree) -> PyTree:
    """Move the parameters into a model built for the trainer's problem, for example a graph with other nodes."""
    like = jax.eval_shape(trainer.start).model
    return jax.tree.unflatten(jax.tree.structure(like), jax.tree.leaves(model))
