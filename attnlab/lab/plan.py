"""What a variant is to do, checked before anything is trained or written."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import jax
import numpy as np

from attnlab.lab import configuration, own, precision, settings
from attnlab.lab.confined import confined
from attnlab.lab.folder import FolderError, RunFolder, environment, folder_name
from attnlab.lab.loading import made_under, read, same_data, same_vocabulary
from attnlab.lab.lock import locked
from attnlab.lab.study import Experiment, Study
from attnlab.tasks.base import Problem
from attnlab.training.averaging import counted
from attnlab.training.config import Train

SHOWN = 8  # fields of another configuration that are all named


@dataclass(frozen=True)
class Plan:
    """A variant that was checked and may run, or the result that it has."""

    study: Study
    order: int  # of the variant among those that are run
    variant: str
    experiment: Experiment
    written: dict  # the experiment, as JSON has it
    problem: Problem
    folder: RunFolder
    quick: bool
    clear: bool
    done: dict | None


def plans(
    study: Study,
    experiments: dict[str, Experiment],
    home: Path,
    problems: dict[Any, Problem],
    *,
    quick: bool = False,
    fresh: bool = False,
) -> list[Plan]:
    """A plan for every variant, in folders of `home`; `problems` holds what tasks loaded, and comes to hold the rest.

    Raises as `attnlab.lab.run` does for what cannot be trained, or not there.
    """
    found = []
    for order, (variant, experiment) in enumerate(experiments.items()):
        folder, written = RunFolder(home / folder_name(variant)), configuration.write(experiment)
        confined(folder.path)
        # What a fresh run drops need not be readable.
        before = None if fresh else read(folder, "experiment")
        if before is None and not fresh and folder.left() and (before := read(folder, "experiment")) is None:
            # Read twice: another process may have begun there in between.
            lost = f"{folder.file('experiment')}: is missing, of a run that was begun"
            raise FolderError(f"{lost}: put it back, or --out DIR trains the run anew beside it, --fresh in its place")
        # A glimpse is thrown away by the real run.
        clear = fresh and folder.left() if before is None else before["quick"] and not quick
        kept = None if clear else before
        if kept is not None:
            _same(folder, variant, kept, written)
        precision.check(experiment.model)
        if experiment.task not in problems:
            problems[experiment.task] = experiment.task.load()
        problem = problems[experiment.task]
        done = None if kept is None else _done(folder, kept, problem)
        # What a model cannot be built for is met here, not in the middle of the study.
        model = jax.eval_shape(lambda e=experiment, p=problem: e.model.create(jax.random.key(0), p.shape))
        if kept is not None and done is None and (folder.path / "checkpoints").is_dir():
            settings.refuse_others(folder.path, made_under(folder), environment())
        if done is None:
            check_steps(problem, experiment.train, quick)
            _check_lengths(problem, model, experiment.train)
        _check_decoder(experiment, problem, model)
        found.append(Plan(study, order, variant, experiment, written, problem, folder, quick, clear, done))
    return found


def ahead(found: Iterable[Plan], plan: Plan, workers: int = 1) -> int:
    """The training steps of the variants behind one that have no result by now, as so many processes share them."""
    behind = (each for each in found if each.order > plan.order and not each.folder.file("result").exists())
    return sum(each.experiment.train.steps for each in behind) // workers


def free(found: Iterable[Plan], note: Callable[[str], None]) -> None:
    """Raise LockedError where another process trains in a folder that is yet to be trained in.

    `note` hears of locks whose process ended without letting go of them.
    """
    for plan in found:
        if plan.done is None and (plan.folder.path / "lock").exists():
            with locked(plan.folder.path, note):
                pass


def _done(folder: RunFolder, kept: dict, problem: Problem) -> dict | None:
    """The result that a folder has, which must be of these data."""
    same_data(folder, kept, problem)
    done = read(folder, "result")
    # A run that was killed between its first files writes the rest.
    if done is None and folder.file("vocabulary").exists():
        same_vocabulary(folder, problem)
    return done


def check_steps(problem: Problem, train: Train, quick: bool = False) -> None:
    """Raise ValueError where nothing is left to train, or to average, after steps that only prepare; `quick`: so few
    as a glimpse has.
    """
    if problem.preparing >= train.steps:
        glimpse = " of --quick" if quick else ""
        raise ValueError(
            f"train.steps={train.steps}{glimpse} must be more than the {problem.preparing} first ones, which only "
            "prepare for the task"
        )
    if (first := min(counted(train), default=train.steps)) <= problem.preparing:
        raise ValueError(
            f"train.average={train.average} begins with the model of step {first}, and the {problem.preparing} first "
            "steps only prepare for the task: lower it, or train.average_span"
        )


def _check_lengths(problem: Problem, model: Any, train: Train) -> None:
    """Refuse a model that cannot take what it is to be trained on or examined with, before anything is written."""
    longest = max(problem.examination("test", 1), key=lambda batch: max(map(np.size, batch.values())))
    batches = [problem.batch(0, step, 1) for step in dict.fromkeys((0, problem.preparing))]
    for batch in (*batches, longest):
        jax.eval_shape(partial(problem.loss, key=None), model, batch)


def _check_decoder(experiment: Experiment, problem: Problem, model: Any) -> None:
    """Refuse a decoder that could not answer the test, before anything is trained."""
    from attnlab.decoding import Decoder

    decoder = experiment.decoder
    if decoder is None:
        return
    if not isinstance(decoder, Decoder):
        raise ValueError(f"decoder={decoder!r} must be a decoder, such as those of attnlab.DECODERS")
    if not problem.decodes:
        raise ValueError(f"decoder={decoder}: what this task asks is not answered symbol by symbol; leave it out")
    answer: Any = problem.answer  # where answers are decoded it takes a decoder
    batch = {name: values[:1] for name, values in problem.examination("test", 1)[0].items()}
    jax.eval_shape(partial(answer, decoder=decoder), model, batch)


def _same(folder: RunFolder, variant: str, before: dict, written: dict) -> None:
    """Refuse a folder of another variant or configuration, and one of other code of one's own."""
    if held := _other(variant, before, written):
        raise ValueError(f"{folder.path} holds {held}; --out DIR keeps both")


def _other(variant: str, before: dict, written: dict) -> str | None:
    """What a folder holds that is not what the plan is for; None where it is."""
    if before["variant"] != variant:
        return f"the run of variant {before['variant']!r}"
    if differing := configuration.difference(configuration.completed(before["experiment"]), written):
        shown = [f"{path} was {old!r}, now {new!r}" for path, old, new in differing[:SHOWN]]
        more = [f"{len(differing) - SHOWN} more"] * (len(differing) > SHOWN)
        return f"another configuration: {', '.join([*shown, *more])}; set as they were, these fields continue that run"
    if changed := own.edited(before, written):
        return f"what the code of {', '.join(changed)} made before it was changed"
    return None
