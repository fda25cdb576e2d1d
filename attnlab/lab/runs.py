"""Running a study: every variant and lane, each in its folder, resumed where it stopped."""

from __future__ import annotations

import shutil
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import jax
import numpy as np

from attnlab.lab import configuration, precision
from attnlab.lab.describe import Ledger, costs
from attnlab.lab.folder import RunFolder, environment, folder_name
from attnlab.lab.jsonfile import named
from attnlab.lab.loading import read, same_data
from attnlab.lab.lock import locked
from attnlab.lab.look import look
from attnlab.lab.matching import matched
from attnlab.lab.progress import Silent
from attnlab.lab.result import result
from attnlab.lab.study import Experiment, Study
from attnlab.tasks.base import Pairs, Problem
from attnlab.training.checkpoints import Checkpoints
from attnlab.training.loop import Fitted, fit
from attnlab.training.trainer import Trainer

QUICK = 256  # test examples of a glimpse: one batch, of the shape that validation has compiled


@dataclass(frozen=True)
class Results:
    """A finished study: its folder, its page, and the exit code (5 where lanes diverged)."""

    folder: Path
    report: Path
    code: int


def run(
    study: Study,
    out: str | Path = "runs",
    *,
    quick: bool = False,
    fresh: bool = False,
    progress: Any = None,
    command: str = "",
) -> Results:
    """Train every variant of a study that is not done yet, and write its page.

    `quick` takes the study's own glimpse; `fresh` drops what stands in the folders. Nothing is written before every
    variant has been checked. Raises ValueError for a folder that holds another configuration, DataError for one that
    was made from other data, LockedError for one in which another process trains, FolderError for what is broken.
    """
    progress = Silent() if progress is None else progress
    if quick:
        study = glimpse(study)
    name = folder_name(study.name or "study")
    problems: dict[Any, Problem] = {}
    found = matched(study, Ledger(problems), quick)
    plans = [
        _plan(study, variant, experiment, Path(out) / name, quick, fresh, problems)
        for variant, experiment in found.experiments.items()
    ]
    _free(plans)
    for line in found.lines:
        progress.note(line)
    for problem in problems.values():
        for note in problem.notes:
            progress.note(note)
    for plan in plans:
        if plan.done:
            progress.note(f"{plan.variant}: done before, in {plan.folder.path}")
    diverged = 0
    for n, plan in enumerate(plans):
        found = plan.done or _conduct(plan, n, len(plans), command, progress)
        diverged += len(found["diverged"])
    from attnlab.lab.report import report

    return Results(Path(out) / name, report(Path(out) / name), 5 if diverged else 0)


def glimpse(study: Study) -> Study:
    """The study with what `--quick` changes: its own `quick` fields, or a few steps of the first two seeds."""
    if study.quick:
        return study
    train = study.base.train
    seeds = min(train.seeds, 2) if isinstance(train.seeds, int) else train.seeds[:2]
    return replace(study, quick={
        "train.steps": min(train.steps, 64), "train.warmup": min(train.warmup, 16), "train.seeds": seeds,
    })  # fmt: skip


@dataclass(frozen=True)
class Plan:
    """A variant that was checked and may run, or the result that it has."""

    study: Study
    variant: str
    experiment: Experiment
    problem: Problem
    folder: RunFolder
    quick: bool
    clear: bool
    done: dict | None


def _plan(study, variant, experiment, home: Path, quick: bool, fresh: bool, problems: dict) -> Plan:
    folder = RunFolder(home / folder_name(variant))
    # What a fresh run drops need not be readable.
    before = None if fresh else read(folder, "experiment")
    # A glimpse is thrown away by the real run.
    clear = folder.file("experiment").exists() if before is None else before["quick"] and not quick
    kept = None if clear else before
    if kept is not None:
        _same(folder, kept, experiment)
    precision.check(experiment.model)
    if experiment.task not in problems:
        problems[experiment.task] = experiment.task.load()
    problem = problems[experiment.task]
    done = None
    if kept is not None:
        same_data(folder, kept, problem)
        done = read(folder, "result")
        if done is None:
            problem.check(folder.path)
    # What a model cannot be built for is met here, not in the middle of the study.
    model = jax.eval_shape(lambda: experiment.model.create(jax.random.key(0), problem.shape))
    _check_decoder(experiment, problem, model)
    return Plan(study, variant, experiment, problem, folder, quick, clear, done)


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


def _free(plans: list[Plan]) -> None:
    """Raise LockedError where another process trains in a folder that is yet to be trained in."""
    for plan in plans:
        if plan.done is None and (plan.folder.path / "lock").exists():
            with locked(plan.folder.path):
                pass


def _same(folder: RunFolder, before: dict, experiment: Experiment) -> None:
    differing = configuration.difference(before["experiment"], configuration.write(experiment))
    if differing:
        fields = ", ".join(f"{path} was {old!r}, now {new!r}" for path, old, new in differing[:4])
        raise ValueError(
            f"{folder.path} holds another configuration: {fields}; --fresh starts again, --out DIR keeps both"
        )


def _conduct(plan: Plan, index: int, count: int, command: str, progress: Any) -> dict:
    """Train one variant to its result."""
    folder, train = plan.folder, plan.experiment.train
    with named(folder.path):
        folder.path.mkdir(parents=True, exist_ok=True)
    with locked(folder.path):
        if plan.clear:
            with named(folder.path):
                _clear(folder.path)
        _describe(plan, command)
        trainer = Trainer(
            lambda key: plan.experiment.model.create(key, plan.problem.shape), plan.problem, train,
            announce=progress.compiling, announced=progress.compiled,
        )  # fmt: skip
        checkpoints = Checkpoints(folder.path / "checkpoints", note=progress.note)
        progress.variant(plan.variant, index, count, train.steps, max(checkpoints.steps(), default=0))
        fitted = fit(trainer, checkpoints, folder.append_metrics, folder.truncate_metrics, progress)
        valid = trainer.evaluate(fitted.model, "valid", 512) if len(train.rates) > 1 else None
        test = trainer.evaluate(fitted.model, "test", QUICK if plan.quick else None, plan.experiment.decoder)
        found = result(plan.experiment, plan.problem, fitted, valid, test, costs(plan.experiment, plan.problem))
        # Where there is no sequence to be read by another there is no map of it.
        if found["metrics"] and isinstance(plan.problem.shape, Pairs):
            seen = _maps(plan, fitted, found)
            if seen is not None:
                folder.write("maps", seen)
        folder.write("result", found)
    return found


def _clear(folder: Path) -> None:
    """Empty the folder, except for the lock that is held."""
    for path in folder.iterdir():
        if path.is_dir():
            shutil.rmtree(path)
        elif path.name != "lock":
            path.unlink()


def _describe(plan: Plan, command: str) -> None:
    """Say what the folder is for, before the first step."""
    if plan.folder.read("experiment") is None:
        plan.problem.save(plan.folder.path)
        plan.folder.write("environment", environment())
        plan.folder.write("experiment", {
            "study": plan.study.name, "question": plan.study.question, "variant": plan.variant, "quick": plan.quick,
            "command": command, "fingerprint": plan.problem.fingerprint,
            "match": plan.study.match, "budget": plan.study.budget,
            "published": None if plan.quick else plan.study.published.get(plan.variant),
            "experiment": configuration.write(plan.experiment),
        })  # fmt: skip


def _maps(plan: Plan, fitted: Fitted, found: dict) -> dict[str, Any] | None:
    """The attention of the first lane of the chosen rate on the longest of the first test examples, if it has any."""
    alive = np.asarray(fitted.state.alive)
    lane = next(
        n for n, (_, rate) in enumerate(plan.experiment.train.lanes) if rate == found["learning_rate"] and alive[n]
    )
    model = jax.tree.map(lambda x: x[lane], fitted.model)
    batch = plan.problem.examination("test", 8)[0]
    row = int(np.argmax(np.sum(batch["source"] != 0, axis=1)))
    batch = {name: values[row : row + 1] for name, values in batch.items()}
    answer = jax.jit(plan.problem.answer)(model, batch)
    return look(plan.experiment.model, model, plan.problem, batch, answer)
