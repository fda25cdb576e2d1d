"""Plans of variants, checked before anything is trained or written."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import jax
import numpy as np
from jaxtyping import PyTree

from attnlab.analysis.cost import flops
from attnlab.console.metric import Metric
from attnlab.lab.planning import precision
from attnlab.lab.runs.confined import confined
from attnlab.lab.runs.identity import ANEW, environment_of, read_file, same_data, same_vocabulary
from attnlab.lab.runs.run_folder import FolderError, RunFolder
from attnlab.lab.study import serialize, user_code
from attnlab.lab.study.names import check_folder_name
from attnlab.lab.study.study import Experiment, Study
from attnlab.storage.lock import locked
from attnlab.system import settings
from attnlab.system.environment import environment
from attnlab.tasks.base.task import Task, TaskData
from attnlab.training.averaging import averaged_steps
from attnlab.training.config import Train

SHOWN = 8  # differing fields that an error lists, at most


@dataclass(frozen=True)
class Plan:
    """A variant that has been checked and can run, or that has already finished."""

    study: Study
    """The study."""
    order: int
    """The index of the variant among those that are run."""
    variant: str
    """The name of the variant."""
    experiment: Experiment
    """The experiment, after matching."""
    written: dict
    """The experiment as JSON (`serialize.write`)."""
    problem: TaskData
    """The loaded data of the task."""
    folder: RunFolder
    """The folder of the run."""
    quick: bool
    """Whether the run is a preview."""
    clear: bool
    """Whether the folder is to be emptied first: with `fresh`, or if it holds only a preview."""
    done: dict | None
    """The result, if the run has finished."""
    step_flops: int | None = None
    """The approximate FLOPs of a training step of all lanes, or None if the run has finished or nothing was checked."""


def plans(
    study: Study,
    experiments: dict[str, Experiment],
    home: Path,
    problems: dict[Task, TaskData],
    *,
    quick: bool = False,
    fresh: bool = False,
    checked: bool = False,
) -> list[Plan]:
    """Check every variant and return its plan.

    Args:
        study: the study.
        experiments: the experiments after matching, by variant.
        home: the folder of the study.
        problems: the loaded data, by task. Data of further tasks are added to it.
        quick: whether the runs are previews.
        fresh: whether existing runs are to be replaced.
        checked: whether the models have been checked already, by the process that started this one. Their traces take
            most of the time.

    Returns:
        The plans, in the order of the variants.

    Raises:
        ValueError, DataError, FolderError: as `attnlab.lab.run` does, for a variant that cannot be trained, or not in
            its folder.
    """
    found = []
    for order, (variant, experiment) in enumerate(experiments.items()):
        folder, written = RunFolder(home / check_folder_name(variant)), serialize.write(experiment)
        confined(folder.path)
        # Files that a fresh run deletes need not be readable.
        before = None if fresh else read_file(folder, "experiment")
        if before is None and not fresh and folder.has_run() and (before := read_file(folder, "experiment")) is None:
            # Read a second time, because another process may have started the run in between.
            missing = f"{folder.file('experiment')} is missing, but the folder contains a run"
            raise FolderError(f"{missing}; restore it, or {ANEW}")
        # A real run replaces a preview.
        clear = fresh and folder.has_run() if before is None else before["quick"] and not quick
        kept = None if clear else before
        if kept is not None:
            _same(folder, variant, kept, written, quick)
        precision.check(experiment.model)
        if experiment.task not in problems:
            problems[experiment.task] = experiment.task.load()
        problem = problems[experiment.task]
        done = None if kept is None else _done(folder, kept, problem)
        if kept is not None and done is None and (folder.path / "checkpoints").is_dir():
            settings.refuse_others(folder.path, environment_of(folder), environment())
        check_ranges(study, variant, problem.metric)
        if done is None:
            check_steps(problem, experiment.train, quick)
        step = None if checked else _check_model(experiment, problem, done is None)
        found.append(Plan(study, order, variant, experiment, written, problem, folder, quick, clear, done, step))
    return found


def steps_after(found: Iterable[Plan], plan: Plan, workers: int = 1) -> int:
    """Return the training steps that remain after a variant, for the estimate of the time left.

    Args:
        found: the plans of all variants.
        plan: the present variant.
        workers: the number of processes that share the variants.

    Returns:
        The steps of later variants without a result, divided by `workers`.
    """
    later = (each for each in found if each.order > plan.order and not each.folder.file("result").exists())
    return sum(each.experiment.train.steps for each in later) // workers


def check_unlocked(found: Iterable[Plan], note: Callable[[str], None]) -> None:
    """Raise LockedError if another process trains in the folder of an unfinished plan.

    Args:
        found: the plans.
        note: called with a line for each stale lock, whose process ended without releasing it.
    """
    for plan in found:
        if plan.done is None and (plan.folder.path / "lock").exists():
            with locked(plan.folder.path, note):
                pass


def _done(folder: RunFolder, kept: dict, problem: TaskData) -> dict | None:
    """Return the result in a folder, or None. Raises DataError if the run was made from other data."""
    same_data(folder, kept, problem)
    done = read_file(folder, "result")
    # The vocabulary may be missing if the run was killed while its first files were written. It is then written again.
    if done is None and folder.file("vocabulary").exists():
        same_vocabulary(folder, problem)
    return done


def check_ranges(study: Study, variant: str, metric: Metric) -> None:
    """Raise ValueError for a margin or an expected value that lies outside the range of a primary metric.

    70 instead of 0.7 for 70% would be printed as 7000%, and with a margin of 2 all accuracies would be the same.

    Args:
        study: the study.
        variant: the name of a variant.
        metric: the primary metric of its task.
    """
    hint = "; 0.01 is one point" if metric.is_fraction else ""
    if study.margin is not None and study.margin >= metric.width:
        raise ValueError(
            f"margin={study.margin:g} must be below {metric.width:g}, the largest difference of {metric.title}{hint}"
        )
    for field, values in (("published", [study.published.get(variant)]), ("bands", study.bands.get(variant, ()))):
        for value in values:
            if value is not None and not metric.low <= value <= metric.high:
                raise ValueError(
                    f"{field}: {variant}={value:g} must be in {metric.low:g} … {metric.high:g}, "
                    f"the range of {metric.title}{hint}"
                )


def check_steps(problem: TaskData, train: Train, quick: bool = False) -> None:
    """Raise ValueError if pretraining takes all steps, or if a step to be averaged lies within it.

    Args:
        problem: the data, with its number of pretraining steps.
        train: the training configuration.
        quick: whether the message refers to a preview.
    """
    if problem.pretraining_steps >= train.steps:
        preview = " (--quick)" if quick else ""
        raise ValueError(
            f"train.steps={train.steps}{preview} must be greater than the number of pretraining steps, "
            f"{problem.pretraining_steps}"
        )
    if (first := min(averaged_steps(train), default=train.steps)) <= problem.pretraining_steps:
        raise ValueError(
            f"train.average={train.average} averages from step {first}, but the first "
            f"{problem.pretraining_steps} steps are pretraining; reduce it, or train.average_span"
        )


def _check_model(experiment: Experiment, problem: TaskData, trains: bool) -> int | None:
    """Trace the constructor of the model and what it will compute, so that what fails does so before any training.

    Returns:
        The approximate FLOPs of a training step of all lanes, three times those of the loss, or None without training.
    """
    model, found = jax.eval_shape(lambda: experiment.model.create(jax.random.key(0), problem.shape)), None
    if trains:
        train = experiment.train
        found = 3 * _check_lengths(problem, model) * train.batch_size * train.accumulate * len(train.lanes)
    _check_decoder(experiment, problem, model)
    return found


def _check_lengths(problem: TaskData, model: PyTree) -> int:
    """Trace the loss on training batches and the longest test batch, so that a model that cannot take them fails.

    Returns:
        The FLOPs of the loss of one example, the most of these batches.
    """
    longest = max(problem.eval_batches("test", 1), key=lambda batch: max(map(np.size, batch.values())))
    batches = [problem.batch(0, step, 1) for step in dict.fromkeys((0, problem.pretraining_steps))]
    shapes = [jax.tree.map(lambda x: jax.ShapeDtypeStruct(x.shape, x.dtype), batch) for batch in (*batches, longest)]
    different = [batch for n, batch in enumerate(shapes) if batch not in shapes[:n]]
    return max(flops(partial(problem.loss, key=None), model, batch) for batch in different)


def _check_decoder(experiment: Experiment, problem: TaskData, model: PyTree) -> None:
    """Raise ValueError for a decoder that is no Search, or on a task without decoding, and trace it on one example."""
    from attnlab.decoding import Search

    decoder = experiment.decoder
    if decoder is None:
        return
    if not isinstance(decoder, Search):
        raise ValueError(f"decoder={decoder!r} must be a decoder, for example one of attnlab.DECODERS")
    if not problem.decodes:
        raise ValueError(
            f"decoder={decoder}: the answers of this task are not decoded symbol by symbol; leave the decoder out"
        )
    answer: Any = problem.answer  # tasks that decode accept the argument `decoder`
    batch = {name: values[:1] for name, values in problem.eval_batches("test", 1)[0].items()}
    jax.eval_shape(partial(answer, decoder=decoder), model, batch)


def _same(folder: RunFolder, variant: str, before: dict, written: dict, quick: bool) -> None:
    """Raise ValueError if a folder holds a run that the plan cannot continue.

    It is a run of another variant or configuration, one of user code that was changed, or, for a preview, a full run.
    A preview would test the full run on fewer examples.
    """
    other = _other(variant, before, written)
    if other is None and quick and not before["quick"]:
        other = "a full run; continue it without --quick, or "
    if other is not None:
        raise ValueError(f"{folder.path} contains {other}set another --out DIR to keep both")


def _other(variant: str, before: dict, written: dict) -> str | None:
    """Describe how the run in a folder differs from the plan, up to the remedy. Returns None if it does not differ."""
    if before["variant"] != variant:
        return f"the run of variant {before['variant']!r}; "
    if differing := serialize.difference(serialize.completed(before["experiment"]), written):
        shown = [f"{path} was {old!r}, now {new!r}" for path, old, new in differing[:SHOWN]]
        more = [f"{len(differing) - SHOWN} more"] * (len(differing) > SHOWN)
        return f"another configuration ({', '.join([*shown, *more])}); restore these values to continue that run, or "
    if changed := user_code.edited(before, written):
        return f"a run with an earlier version of the code of {', '.join(changed)}; "
    return None
