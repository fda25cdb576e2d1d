"""A trained run, read back from its folder."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax
import numpy as np

from attnlab.lab import configuration
from attnlab.lab.folder import FolderError, RunFolder
from attnlab.lab.study import Experiment
from attnlab.tasks.base import Problem
from attnlab.training.checkpoints import CheckpointError, Checkpoints
from attnlab.training.trainer import Trainer


@dataclass(frozen=True)
class Trained:
    """A run's experiment, its problem, and the model of one lane: of the chosen rate, the first seed that converged."""

    experiment: Experiment
    problem: Problem
    model: Any


def load(run: str | Path) -> tuple[Any, Problem]:
    """The trained model of a run folder and the problem it was trained on.

    Raises FolderError or CheckpointError, in one line naming the file, for what cannot be used.
    """
    found = trained(run)
    return found.model, found.problem


def trained(run: str | Path) -> Trained:
    """What `load` answers, with the experiment."""
    folder = RunFolder(Path(run))
    written = folder.read("experiment")
    if written is None:
        raise FolderError(f"{run} is no run folder: it has no experiment.json")
    experiment = configuration.read(written["experiment"])
    problem = experiment.task.load()
    problem.check(folder.path)
    trainer = Trainer(lambda key: experiment.model.create(key, problem.shape), problem, experiment.train)
    found = Checkpoints(folder.path / "checkpoints").restore(jax.eval_shape(trainer.start))
    if found is None:
        raise CheckpointError(f"{run} has no checkpoint yet: attnlab run saves one every train.save_every steps")
    state = found[1]
    lane = _lane(experiment, folder.read("result"), np.asarray(state.alive))
    return Trained(experiment, problem, jax.tree.map(lambda x: x[lane], state.model))


def _lane(experiment: Experiment, result: dict | None, alive: np.ndarray) -> int:
    rate = result["learning_rate"] if result else experiment.train.rates[0]
    lanes = [n for n, (_, at) in enumerate(experiment.train.lanes) if at == rate and alive[n]]
    if not lanes:
        raise CheckpointError(f"every lane at learning rate {rate} diverged: there is no model to load")
    return lanes[0]
