"""Load a trained run from its folder."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, Literal, TypeVar, cast, overload

import jax
import numpy as np
from jaxtyping import PyTree

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
from attnlab.system import compilation_cache, settings
from attnlab.tasks.base.task import TaskData
from attnlab.tasks.base.text_interface import TextInterface
from attnlab.training.averaging import averaged
from attnlab.training.checkpoints import CheckpointError, Checkpoints
from attnlab.training.state import State, select_lane
from attnlab.training.trainer import Trainer

Interface = TypeVar("Interface", bound=TextInterface, covariant=True)
JsonObject = dict[str, object]


@dataclass(frozen=True)
class Trained(Generic[Interface]):
    """The experiment, the data and one lane's model of a trained run.

    The lane belongs to the chosen learning rate. It is the first seed at that rate that did not diverge.
    """

    experiment: Experiment
    """The experiment that the run was trained with."""
    problem: Interface
    """The task's `TaskData`, or only its `TextInterface` if the run was loaded without its data."""
    model: PyTree
    """The model of the lane."""
    step: int = 0
    """The step of the checkpoint that the model was read from."""


Step = int | Literal["best", "last"] | None


def load(run: str | Path, step: Step = None) -> tuple[PyTree, TaskData]:
    """Load the trained model of a run folder and the data it was trained on.

    If newer checkpoints fail verification, a line on stderr says so and names the one that is used.

    Args:
        run: The run folder.
        step: Which checkpoint to load. An integer is the step of a checkpoint. "best" is the checkpoint with the best
            validation metric, averaged over the seeds. "last" is the newest checkpoint that verifies. With any of
            these, the returned model is the one of that step. None (the default) returns the model that was tested,
            from the newest checkpoint that verifies. That model may be a mean of several models or the best of its
            lane.

    Returns:
        The pair `(model, data)`. `data` also encodes inputs and formats answers.

    Raises:
        FolderError: The folder is not a usable run folder. The message names the file.
        DataError: The data or the vocabulary are not those of the training. The message names the file.
        CheckpointError: No usable checkpoint exists, or every lane diverged. Also raised for "best" if the run has
            several learning rates, because validation compared checkpoints at whichever rate was ahead at each of them.
        ValueError: jax's settings prevent loading, or differ from those of the training in a way that changes the
            arrays.
    """
    found = trained(run, step)
    return found.model, found.problem


@overload
def trained(run: str | Path, step: Step = None, data: Literal[True] = True) -> Trained[TaskData]: ...
@overload
def trained(run: str | Path, step: Step = None, *, data: Literal[False]) -> Trained[TextInterface]: ...
def trained(run: str | Path, step: Step = None, data: bool = True) -> Trained[TextInterface]:
    """Return what `load` returns, together with the experiment and the step.

    Args:
        run: The run folder.
        step: Which checkpoint to load, as in `load`.
        data: If False, only the text interface that the folder describes is built. The data are then loaded only
            if the task cannot encode an input without them.

    Raises:
        FolderError, DataError, CheckpointError, ValueError: As in `load`.
    """
    found = restored(run, step, data=data)
    lane = lane_of(found.experiment, found.result, np.asarray(found.state.alive))
    model = select_lane(found.models, lane)
    return Trained(found.experiment, found.problem, model, found.step)


@dataclass(frozen=True)
class Restored(Generic[Interface]):
    """The experiment, the data and every lane of a run at one checkpoint."""

    experiment: Experiment
    """The experiment that the run was trained with."""
    problem: Interface
    """The data, as in `Trained`."""
    state: State
    """The training state of all lanes at the checkpoint."""
    step: int
    """The step of the checkpoint."""
    result: JsonObject | None
    """The contents of `result.json`, or None if the run has not finished."""
    models: PyTree
    """The models of all lanes: those of the requested step, or the tested ones if no step was requested."""


@overload
def restored(run: str | Path, step: Step = None, data: Literal[True] = True) -> Restored[TaskData]: ...
@overload
def restored(run: str | Path, step: Step = None, *, data: bool) -> Restored[TextInterface]: ...
def restored(run: str | Path, step: Step = None, data: bool = True) -> Restored[TextInterface]:
    """Load every lane of a run. `trained` selects one of them.

    Args:
        run: The run folder.
        step: Which checkpoint to load, as in `load`.
        data: Whether to load the data, as in `trained`. Default: True.

    Raises:
        FolderError, DataError, CheckpointError, ValueError: As in `load`, except that all lanes may have diverged.
    """
    folder = RunFolder(Path(run))
    written = read_file(folder, "experiment")
    if written is None:
        raise FolderError(f"{run} is not a run folder: it has no experiment.json")
    settings.check()
    compilation_cache.enable()
    now = settings.numbers()
    settings.refuse_others(run, environment_of(folder), {name: now[name] for name in settings.SHAPES})
    experiment, skipped = experiment_of(folder, written), []
    if changed := edited(written, serialize.write(experiment)):
        line = f"{run}: the code of {', '.join(changed)} differs from the code that the run was trained with"
        print(plain(f"attnlab: {line}"), file=sys.stderr)
    problem = _interpreter(folder, experiment) if not data else None
    if problem is None:
        problem = experiment.task.load()
        same_data(folder, written, problem)
        same_vocabulary(folder, problem)
    checkpoints = checkpoints_of(folder, fingerprint(folder, written), note=skipped.append)
    if step == "best" and len(experiment.train.rates) > 1:
        raise CheckpointError(
            f"{run} was trained at {len(experiment.train.rates)} learning rates, so it has no single best checkpoint; "
            f"choose one of the steps {', '.join(map(str, checkpoints.steps())) or '(none yet)'}"
        )
    create = lambda key: experiment.model.create(key, problem.shape)
    trainer = Trainer(create, cast(TaskData, problem), experiment.train)
    result = read_file(folder, "result")
    requested, (step, state) = step, _state(checkpoints, step, jax.eval_shape(trainer.start), result)
    if requested is None and not skipped and result is not None and result.get("steps", step) != step:
        skipped.append(f"{run}: the checkpoint of step {result['steps']}, which was tested, is missing")
    for line in skipped:
        print(plain(f"attnlab: {line}; using the checkpoint of step {step}"), file=sys.stderr)
    models = averaged(experiment.train, state, step) if requested is None else state.model
    return Restored(experiment, problem, state, step, result, models)


def unfinished(run: str | Path, found: Trained | Restored, newest: int) -> list[str]:
    """Return notes that say which checkpoint was used, if it is not the final one.

    Args:
        run: The run folder.
        found: The loaded run.
        newest: The step of the newest checkpoint.

    Returns:
        A list of at most one line. It is empty if the run has finished and the newest checkpoint was used.
    """
    if found.step != newest:
        return [f"the model is from step {found.step:,}; the newest checkpoint is from step {newest:,}"]
    if read_file(RunFolder(Path(run)), "result") is not None:
        return []
    train = found.experiment.train
    first = f", at {train.rates[0]:g}, the first of {len(train.rates)} learning rates (one is chosen at the end)"
    return [
        f"unfinished run: the model is from step {newest:,} of {train.steps:,}{first if len(train.rates) > 1 else ''}"
    ]


def _state(checkpoints: Checkpoints, step: Step, like: State, result: JsonObject | None) -> tuple[int, State]:
    """Read the requested checkpoint, and return its step and the training state."""
    if not checkpoints.steps():
        run = checkpoints.folder.parent
        if result is not None:
            raise CheckpointError(
                f"{run} is finished but has no checkpoints left; its result is kept, and --out DIR trains it again"
            )
        raise CheckpointError(f"{run} has no checkpoint yet: attnlab run saves one every train.save_every steps")
    if step is None or step == "last":
        if (found := checkpoints.restore(like)) is None:
            raise CheckpointError(f"{checkpoints.folder.parent} has no usable checkpoint")
        return found[:2]
    step = checkpoints.best() if step == "best" else step
    return step, checkpoints.read(step, like)[0]


def _interpreter(folder: RunFolder, experiment: Experiment) -> TextInterface | None:
    """Build the task's text interface from the folder's vocabulary. Returns None if the task needs its data for it."""
    return experiment.task.text_interface(_vocabulary(folder), str(folder.file("vocabulary")))


def lane_of(experiment: Experiment, result: dict | None, alive: np.ndarray) -> int:
    """Return the index of the lane that represents a run.

    The lane is the first seed of the run's learning rate that did not diverge. The rate is the chosen one, or the first
    of several if the run has no result yet.

    Args:
        experiment: The experiment of the run.
        result: The contents of `result.json`, or None if the run has not finished. With a result, seeds that diverged
            by the end of training are excluded too.
        alive: Whether each lane has not diverged at the checkpoint, `[lanes]`.

    Raises:
        CheckpointError: Every lane of the rate diverged.
        FolderError: The result names a learning rate that was not trained.
    """
    return lanes_of(experiment, result, alive)[0]


def lanes_of(experiment: Experiment, result: dict | None, alive: np.ndarray) -> list[int]:
    """Return all lanes of the run's learning rate that did not diverge, at least one. Otherwise like `lane_of`.

    Args:
        experiment: The experiment of the run.
        result: The contents of `result.json`, or None if the run has not finished, as in `lane_of`.
        alive: Whether each lane has not diverged at the checkpoint, `[lanes]`.

    Returns:
        The indices of the lanes.

    Raises:
        CheckpointError: Every lane of the rate diverged.
        FolderError: The result names a learning rate that was not trained.
    """
    lanes = experiment.train.lanes
    rate = result.get("learning_rate") if result else experiment.train.rates[0]
    if rate not in experiment.train.rates:
        raise FolderError(f"result.json: learning_rate={rate!r} is not one of the learning rates of the run")
    seeds = result.get("seeds") if result else None
    sound = [alive[n] and (not isinstance(seeds, list) or seed in seeds) for n, (seed, _) in enumerate(lanes)]
    found = [n for n, (_, at) in enumerate(lanes) if at == rate and sound[n]]
    if not found:
        raise CheckpointError(f"every lane at learning rate {rate} diverged: there is no model to load")
    return found
