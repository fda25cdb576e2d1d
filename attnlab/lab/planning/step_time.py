"""Measure the seconds of a training step on this machine, once per study, and keep them in the study's folder."""

from __future__ import annotations

import hashlib
import statistics
import time
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from attnlab.lab.study import serialize
from attnlab.lab.study.study import Experiment
from attnlab.storage import json_file
from attnlab.storage.json_file import dumps, write_whole
from attnlab.tasks.base.task import TaskData
from attnlab.training.trainer import DISPATCH, Trainer

DISPATCHES = 8  # dispatches that are timed for each kind of step, after one to warm up


@dataclass
class Stopwatch:
    """Measures the seconds of a training step of all lanes of an experiment.

    Times in the folder's file are not measured again, so that a study that was interrupted resumes with the same
    number of steps.

    Raises:
        FolderError: if the file cannot be read.
    """

    folder: Path
    """The folder of the study, where `seconds.json` is kept."""
    note: Callable[[str], None] = lambda text: None
    """A function that is called with a line before each measurement."""
    fresh: bool = False
    """Whether to ignore the times in the file and measure anew."""
    found: dict[str, float] = field(default_factory=dict)
    """The times so far, by digest of what was measured."""

    def __post_init__(self):
        kept = None if self.fresh else json_file.content(self.file)
        if kept is not None:
            self.found |= json_file.load_with_checksum(kept, {}, str(self.file))

    @property
    def file(self) -> Path:
        """The file of the measurements: {digest of what was measured: seconds}."""
        return self.folder / "seconds.json"

    def __call__(self, experiment: Experiment, problem: TaskData) -> float:
        """Return the mean seconds of a step over pretraining and other steps, without compilation."""
        steps, pretraining_steps = experiment.train.steps, min(problem.pretraining_steps, experiment.train.steps)
        kinds = [kind for kind in (range(pretraining_steps), range(pretraining_steps, steps)) if kind]
        return sum(len(kind) / steps * self._of(experiment, problem, kind) for kind in kinds)

    def _of(self, experiment: Experiment, problem: TaskData, kind: range) -> float:
        """Return the seconds of a step of one kind, measuring them if necessary."""
        at = _digest(experiment) + (f" from {kind.start}" if kind.start else "")
        if at not in self.found:
            self.note("measuring the time of a training step")
            self.found[at] = measured(experiment, problem, kind)
        return self.found[at]

    def keep(self) -> None:
        """Write the measurements to the file."""
        write_whole(self.file, json_file.dump_with_checksum(self.found, indent=1))


def measured(experiment: Experiment, problem: TaskData, kind: range) -> float:
    """Measure the mean seconds of a step of all lanes over a few dispatches.

    Each dispatch counts with the median of all dispatches of equal shapes, so that noise on the machine has little
    effect.

    Args:
        experiment: the experiment.
        problem: its data.
        kind: the range of steps from which batches are taken, from its start.
    """
    trainer = Trainer(lambda key: experiment.model.create(key, problem.shape), problem, experiment.train)
    state, step, seconds = trainer.start(), kind.start, defaultdict(list)
    for n in range(DISPATCHES + 1):
        steps, count = trainer.batches(step, min(step + DISPATCH, kind.stop))
        began, compiled = time.perf_counter(), trainer.compile_seconds
        state, _ = trainer.advance(state, steps, count)
        if n:
            # The time of a dispatch depends on the lengths of its batches, so only equal shapes are compared.
            seconds[tuple(steps.batches), tuple(sorted(steps.kind[:count].tolist()))].append(
                (time.perf_counter() - began - (trainer.compile_seconds - compiled)) / count
            )
        step = step + count if step + count < kind.stop else kind.start
    return sum(len(each) * statistics.median(each) for each in seconds.values()) / DISPATCHES


def _digest(experiment: Experiment) -> str:
    """Return a digest of what the time of a step depends on. The number of steps and the decoder are left out."""
    train = experiment.train
    parts = serialize.write(experiment)
    key = [parts["task"], parts["model"], train.batch_size, train.accumulate, len(train.lanes)]
    return hashlib.sha256(dumps(key).encode()).hexdigest()[:16]
