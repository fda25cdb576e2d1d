"""A trained run, read back from its folder."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import jax
import numpy as np

from attnlab.console.escape import plain
from attnlab.lab.runs.identity import (
    _vocabulary,
    checkpoints_of,
    environment_of,
    experiment_of,
    fingerprint,
    read_file,
    same_data,
    same_vocabulary,
)
from attnlab.lab.runs.run_folder import FolderError, RunFolder
from attnlab.lab.study import serialize
from attnlab.lab.study.study import Experiment
from attnlab.lab.study.user_code import edited
from attnlab.system import settings
from attnlab.tasks.base.task import TaskData, TextInterface
from attnlab.training.averaging import averaged
from attnlab.training.checkpoints import CheckpointError, Checkpoints
from attnlab.training.trainer import Trainer


@dataclass(frozen=True)
class Trained:
    """A run's experiment, its problem, and the model of one lane: of the chosen rate, the first seed that converged.

    Where it was loaded without its data, `problem` is the text interface alone. `step` is that of the checkpoint.
    """

    experiment: Experiment
    problem: Any
    model: Any
    step: int = 0


Step = int | Literal["best", "last"] | None


def load(run: str | Path, step: Step = None) -> tuple[Any, TaskData]:
    """The trained model of a run folder and the problem it was trained on.

    `step` is that of the checkpoint to take, "best" (of those where seeds were, in the mean, best on validation), or
    "last", the newest that verifies: the model is that of this step. None: the model that was tested, which may be a
    mean of models or the best of its lane, from the newest checkpoint that verifies. A line on stderr says where newer
    ones do not. Raises FolderError, DataError or
    CheckpointError, in one line naming the file, for what cannot be used, and for the best of a run of several learning
    rates: validation chose among checkpoints by whichever rate was ahead at each.
    """
    found = trained(run, step)
    return found.model, found.problem


def trained(run: str | Path, step: Step = None, data: bool = True) -> Trained:
    """What `load` answers, with the experiment; without `data`, as much of the problem as can be had from the folder.

    Without it, only a task that no input can be asked of without its data loads them.
    """
    found = restored(run, step, data)
    lane = lane_of(found.experiment, found.result, np.asarray(found.state.alive))
    model = jax.tree.map(lambda x: x[lane], found.models)
    return Trained(found.experiment, found.problem, model, found.step)


@dataclass(frozen=True)
class Restored:
    """A run's experiment, its problem, and every lane at a checkpoint; `result` is None where it is unfinished.

    `models` are those that answer: of the step that was asked for, or, where none was, those that were tested.
    """

    experiment: Experiment
    problem: Any
    trainer: Trainer
    state: Any
    step: int
    result: dict[str, Any] | None
    models: Any


def restored(run: str | Path, step: Step = None, data: bool = True) -> Restored:
    """What `trained` takes its lane from; the arguments and errors are the same."""
    folder = RunFolder(Path(run))
    written = read_file(folder, "experiment")
    if written is None:
        raise FolderError(f"{run} is no run folder: it has no experiment.json")
    settings.check()
    now = settings.numbers()
    settings.refuse_others(run, environment_of(folder), {name: now[name] for name in settings.SHAPES})
    experiment, passed = experiment_of(folder, written), []
    if other := edited(written, serialize.write(experiment)):
        line = f"{run}: what is taken for {', '.join(other)} is not the code that it was trained with"
        print(plain(f"attnlab: {line}"), file=sys.stderr)
    problem = _interpreter(folder, experiment) if not data else None
    if problem is None:
        problem = experiment.task.load()
        same_data(folder, written, problem)
        same_vocabulary(folder, problem)
    checkpoints = checkpoints_of(folder, fingerprint(folder, written), note=passed.append)
    if step == "best" and len(experiment.train.rates) > 1:
        raise CheckpointError(
            f"{run} was trained at {len(experiment.train.rates)} learning rates, and no one checkpoint is the best of "
            f"them all; ask for one of the steps {', '.join(map(str, checkpoints.steps())) or '(none yet)'}"
        )
    trainer = Trainer(lambda key: experiment.model.create(key, problem.shape), problem, experiment.train)
    result = read_file(folder, "result")
    asked, (step, state) = step, _state(checkpoints, step, jax.eval_shape(trainer.start), result)
    if asked is None and not passed and result is not None and result.get("steps", step) != step:
        passed.append(f"{run}: the checkpoint of step {result['steps']}, which was tested, is gone")
    for line in passed:
        print(plain(f"attnlab: {line}; the checkpoint of step {step} is taken"), file=sys.stderr)
    models = averaged(experiment.train, state, step) if asked is None else state.model
    return Restored(experiment, problem, trainer, state, step, result, models)


def unfinished(run: str | Path, found: Trained | Restored, newest: int) -> list[str]:
    """Which checkpoint was looked at, where it is not that of the end."""
    if found.step != newest:
        return [f"as it was at step {found.step:,}; the newest checkpoint is that of step {newest:,}"]
    if read_file(RunFolder(Path(run)), "result") is not None:
        return []
    train = found.experiment.train
    first = f", at the first of {len(train.rates)} learning rates, {train.rates[0]:g}: none is chosen before the end"
    return [f"unfinished: as it was at step {newest:,} of {train.steps:,}{first if len(train.rates) > 1 else ''}"]


def _state(checkpoints: Checkpoints, step: Step, like: Any, result: Any) -> tuple[int, Any]:
    if not checkpoints.steps():
        run = checkpoints.folder.parent
        if result is not None:
            raise CheckpointError(
                f"{run} is finished, and its checkpoints are gone: its result is kept, and --out DIR trains it anew"
            )
        raise CheckpointError(f"{run} has no checkpoint yet: attnlab run saves one every train.save_every steps")
    if step is None or step == "last":
        step, state, _ = checkpoints.restore(like) or (0, None, None)
        return step, state
    step = checkpoints.best() if step == "best" else step
    return step, checkpoints.read(step, like)[0]


def _interpreter(folder: RunFolder, experiment: Experiment) -> TextInterface | None:
    return experiment.task.text_interface(_vocabulary(folder), str(folder.file("vocabulary")))


def lane_of(experiment: Experiment, result: dict | None, alive: np.ndarray) -> int:
    """The lane that stands for a run: of its rate, the first seed that did not diverge, up to now or, where there is a
    result, to the end. CheckpointError: none.

    FolderError where the result names no rate that was trained with.
    """
    return lanes_of(experiment, result, alive)[0]


def lanes_of(experiment: Experiment, result: dict | None, alive: np.ndarray) -> list[int]:
    """The lanes of a run's rate whose seeds did not diverge, one at least; the rest as `lane_of`."""
    lanes = experiment.train.lanes
    rate = result.get("learning_rate") if result else experiment.train.rates[0]
    if rate not in experiment.train.rates:
        raise FolderError(f"result.json: learning_rate={rate!r} is none of those that were trained with")
    seeds = result.get("seeds") if result else None
    sound = [alive[n] and (not isinstance(seeds, list) or seed in seeds) for n, (seed, _) in enumerate(lanes)]
    found = [n for n, (_, at) in enumerate(lanes) if at == rate and sound[n]]
    if not found:
        raise CheckpointError(f"every lane at learning rate {rate} diverged: there is no model to load")
    return found
