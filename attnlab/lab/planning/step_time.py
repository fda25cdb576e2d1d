"""How many seconds a training step takes on this machine: measured once for a study, and kept beside its runs."""

from __future__ import annotations

import hashlib
import statistics
import time
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from attnlab.lab.study import serialize
from attnlab.lab.study.study import Experiment
from attnlab.storage import json_file
from attnlab.storage.json_file import dumps, write_whole
from attnlab.tasks.base.task import TaskData
from attnlab.training.trainer import DISPATCH, Trainer

DISPATCHES = 8  # that are timed of each kind of step, after one that warms up


@dataclass
class Stopwatch:
    """Measures what a step of all lanes of an experiment takes; what `folder` holds it does not measure again.

    So a study that is interrupted goes on with the steps that it was planned with; a `fresh` one measures anew. `note`
    hears of each measurement. Raises FolderError for a file that cannot be read.
    """

    folder: Path
    note: Any = lambda text: None
    fresh: bool = False
    found: dict[str, float] = field(default_factory=dict)

    def __post_init__(self):
        kept = None if self.fresh else json_file.content(self.file)
        if kept is not None:
            self.found |= json_file.unsealed(kept, {}, str(self.file))

    @property
    def file(self) -> Path:
        """Where the measurements are kept: {digest of what was measured: seconds}."""
        return self.folder / "seconds.json"

    def __call__(self, experiment: Experiment, problem: TaskData) -> float:
        """The seconds of a step, without compiling: the mean over those that prepare and those that do not."""
        steps, pretraining_steps = experiment.train.steps, min(problem.pretraining_steps, experiment.train.steps)
        kinds = [kind for kind in (range(pretraining_steps), range(pretraining_steps, steps)) if kind]
        return sum(len(kind) / steps * self._of(experiment, problem, kind) for kind in kinds)

    def _of(self, experiment: Experiment, problem: TaskData, kind: range) -> float:
        """The seconds of one of the steps of a kind."""
        at = _digest(experiment) + (f" from {kind.start}" if kind.start else "")
        if at not in self.found:
            self.note("measuring how long a training step takes")
            self.found[at] = measured(experiment, problem, kind)
        return self.found[at]

    def keep(self) -> None:
        """Write them down."""
        write_whole(self.file, json_file.sealed(self.found, indent=1))


def measured(experiment: Experiment, problem: TaskData, kind: range) -> float:
    """The mean seconds of a step of all lanes over a few dispatches, on the first batches of those steps.

    Of dispatches of equal shapes the median counts for each, so that a noisy machine does not.
    """
    trainer = Trainer(lambda key: experiment.model.create(key, problem.shape), problem, experiment.train)
    state, step, seconds = trainer.start(), kind.start, defaultdict(list)
    for n in range(DISPATCHES + 1):
        steps, count = trainer.batches(step, min(step + DISPATCH, kind.stop))
        began, compiled = time.perf_counter(), trainer.compile_seconds
        state, _ = trainer.advance(state, steps, count)
        if n:
            # A dispatch takes as long as its batches are wide: those of equal widths are compared.
            seconds[tuple(steps.batches), tuple(sorted(steps.kind[:count].tolist()))].append(
                (time.perf_counter() - began - (trainer.compile_seconds - compiled)) / count
            )
        step = step + count if step + count < kind.stop else kind.start
    return sum(len(each) * statistics.median(each) for each in seconds.values()) / DISPATCHES


def _digest(experiment: Experiment) -> str:
    """Of all that a step's time depends on: not of how many there are, nor of how it is decoded."""
    train = experiment.train
    parts = serialize.write(experiment)
    told = [parts["task"], parts["model"], train.batch_size, train.accumulate, len(train.lanes)]
    return hashlib.sha256(dumps(told).encode()).hexdigest()[:16]
