"""Stops a training after a step and resumes it, for each of many steps, in one process.

Two trainings take turns. One is a language model whose last checkpoints are averaged. The other is a table of scores
whose lanes stop early by patience. Both use dropout and gradient accumulation. The loss and metrics of every step and
lane, every row of validation and every leaf of the final state must equal those of the uninterrupted training, bit for
bit. Each step must be recorded once.
"""

from __future__ import annotations

import os
import signal
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from attnlab.lab.runs.run_folder import RunFolder
from attnlab.models import Language
from attnlab.system.signals import Interrupted
from attnlab.training.checkpoints import Checkpoints
from attnlab.training.config import Train
from attnlab.training.loop import Fitted, fit
from attnlab.training.progress import Silent
from attnlab.training.state_files import flatten
from attnlab.training.trainer import Trainer
from tests.faults.count import Count, Fault, tried
from tests.faults.tiny import TINY

FULL, SHORT = 50, 3
# The periods of evaluation and saving share no divisor with each other, nor with the steps of a dispatch.
TRAIN = Train(
    steps=60, batch_size=4, warmup=4, weight_decay=0.1, accumulate=2, seeds=2, evaluate_every=9, save_every=13
)


@dataclass
class Stepwise(Trainer):
    """A trainer that ends a dispatch at step `halt`, and keeps the metrics of every step by its number."""

    halt: int = 0
    seen: dict[int, dict[str, np.ndarray]] = field(default_factory=dict)

    def batches(self, step, stop):
        return super().batches(step, min(stop, self.halt) if step < self.halt else stop)

    def advance(self, state, batches, count):
        before = int(np.asarray(state.step)[0])
        state, metrics = super().advance(state, batches, count)
        for n in range(count):
            if before + n in self.seen:
                raise Fault(f"step {before + n} was made twice")
            self.seen[before + n] = {name: values[n] for name, values in metrics.items()}
        return state, metrics


@dataclass
class Stopping(Silent):
    """Progress that sends a signal after step `halt`."""

    halt: int

    def advanced(self, step, loss, steps_per_second=None):
        if step == self.halt:
            os.kill(os.getpid(), signal.SIGTERM)


@dataclass
class Training:
    """An uninterrupted training in a folder. Its methods stop and resume others of the same kind."""

    folder: Path
    model: Any
    train: Train

    @cached_property
    def problem(self) -> Any:
        """The data of the task."""
        return TINY.task.load()

    @cached_property
    def whole(self) -> tuple[Stepwise, Fitted]:
        """The trainer and the result of the uninterrupted training."""
        trainer = self.trainer()
        return trainer, self.fit(trainer, self.folder / "whole")

    def trainer(self, **how: Any) -> Stepwise:
        """Returns a trainer of the same training."""
        return Stepwise(lambda key: self.model.create(key, self.problem.shape), self.problem, self.train, **how)

    def fit(self, trainer: Stepwise, folder: Path) -> Fitted:
        """Trains in a folder, starting from its newest checkpoint if there is one.

        Stops after step `halt` of the trainer.
        """
        run, checkpoints = RunFolder(folder), Checkpoints(folder / "checkpoints")
        return fit(trainer, checkpoints, run.append_metrics, run.truncate_metrics, Stopping(trainer.halt))

    def resumed(self, halt: int) -> None:
        """Stops a training after step `halt` and resumes it. Raises Fault if a result differs."""
        one, wanted = self.whole
        seen, folder = {}, self.folder / str(halt)
        # All trainers share one program, because this tests the resume and not the compiler.
        try:
            self.fit(self.trainer(halt=halt, seen=seen, compiled=one.compiled), folder)
        except Interrupted:
            # The resume uses another trainer, as it would in another process.
            found = self.fit(self.trainer(seen=seen, compiled=one.compiled), folder)
        else:
            raise Fault("the signal was not heeded")
        _same("a step's metrics", one.seen, seen)
        _same("validation", _validated(self.folder / "whole"), _validated(folder))
        _same("the state", flatten(wanted.state), flatten(found.state))
        _same("the model", flatten(wanted.model), flatten(found.model))


def run(count: int, seed: int, folder: Path) -> Count:
    """Resumes after `count` different steps, drawn by the seed."""
    trainings = [
        Training(folder / "average", Language(width=8, heads=2, layers=1, dropout=0.1), replace(TRAIN, average=3)),
        Training(folder / "patience", TINY.model, replace(TRAIN, patience=2, learning_rate=0.1, seeds=4)),
    ]
    drawn, used = np.random.default_rng(seed).permutation(np.arange(1, TRAIN.steps)), []

    def case(n: int) -> list[str]:
        training = trainings[n % 2]
        # A training that ends early can be stopped after fewer steps.
        halt = next(int(at) for at in drawn if at not in used and at < training.whole[1].step)
        used.append(halt)
        try:
            training.resumed(halt)
        except Fault as fault:
            raise Fault(f"{training.folder.name}, stopped after step {halt}: {fault}") from fault
        return []

    failures, _ = tried(case, count, seed)
    return Count(count, failures, "bit-equal")


def _validated(folder: Path) -> dict[str, dict]:
    """Returns the validation metrics of every row that has them.

    Raises Fault if a step is recorded twice or out of order.
    """
    rows = RunFolder(folder).metrics()
    steps = [row["step"] for row in rows]
    if steps != sorted(steps) or len({(row["step"], row["seed"]) for row in rows}) < len(rows):
        raise Fault(f"rows stand at steps {steps}")
    found = {}
    for row in rows:
        if scores := {name: value for name, value in row.items() if name.startswith("valid.")}:
            found[f"step {row['step']}, seed {row['seed']}"] = scores
    return found


def _same(what: str, wanted: dict, found: dict) -> None:
    """Raises Fault with the name of the first difference."""
    if wanted.keys() != found.keys():
        raise Fault(f"{what}: {sorted(map(str, wanted.keys() ^ found.keys()))[0]} stands in one alone")
    for name, value in wanted.items():
        if isinstance(value, dict):
            _same(f"{what}, {name}", value, found[name])
        elif np.asarray(value).tobytes() != np.asarray(found[name]).tobytes():
            raise Fault(f"{what}: {name} differs")
