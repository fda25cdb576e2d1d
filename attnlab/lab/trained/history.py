"""The trained model at every checkpoint that the run folder still holds."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import jax
import numpy as np
from jaxtyping import PyTree

from attnlab.lab.runs.identity import checkpoints_of, read_file
from attnlab.lab.runs.run_folder import RunFolder
from attnlab.lab.trained.load import Trained, lane_of
from attnlab.tasks.base.task import TaskData
from attnlab.training.averaging import averaged
from attnlab.training.checkpoints import CheckpointError
from attnlab.training.state import select_lane
from attnlab.training.trainer import Trainer


@dataclass(frozen=True)
class CheckpointModel:
    """The model of one checkpoint."""

    step: int
    """The step of the checkpoint."""
    model: PyTree
    """The model at that step, of the lane that `trained` returns, or None if the checkpoint is unusable."""
    trouble: str | None = None
    """Why the checkpoint is unusable, or None."""


def history(run: str | Path, found: Trained[TaskData]) -> Iterator[CheckpointModel]:
    """Yield every checkpoint of a run, the newest first. `found` is what `trained` returned for the run."""
    folder, train, shape = RunFolder(Path(run)), found.experiment.train, found.problem.shape
    trainer = Trainer(lambda key: found.experiment.model.create(key, shape), found.problem, train)
    checkpoints = checkpoints_of(folder, found.problem.fingerprint)
    like, lane = jax.eval_shape(trainer.start), None
    for step in reversed(checkpoints.steps()):
        try:
            state, _ = checkpoints.read(step, like)
        except CheckpointError as error:
            yield CheckpointModel(step, None, str(error))
            continue
        # The newest usable checkpoint decides on the lane, so that all steps show the same one.
        lane = lane_of(found.experiment, read_file(folder, "result"), np.asarray(state.alive)) if lane is None else lane
        yield CheckpointModel(step, select_lane(averaged(train, state, step), lane))
