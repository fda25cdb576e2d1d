"""Training stopped after a step and resumed, for each of many steps, in one process.

Two trainings take turns: a language model whose last checkpoints are averaged, and a table of scores whose lanes stop
by patience; both with dropout and with gradients accumulated. Every step's loss and metrics in every lane, every row of
validation and every leaf of the final state must be those of the training that nobody stopped, bit for bit, and each
step be recorded once.
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
# Evaluated and saved at periods that share no divisor with each other, nor with the steps of a dispatch.
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
    """A training that nobody stops, in a folder, and others of the same that are stopped."""

    folder: Path
    model: Any
    train: Train

    @cached_property
    def problem(self) -> Any:
        """The sequences."""
        return TINY.task.load()

    @cached_property
    def whole(self) -> tuple[Stepwise, Fitted]:
        """The one that nobody stops."""
        trainer = self.trainer()
        return trainer, self.fit(trainer, self.folder / "whole")

    def trainer(self, **how: Any) -> Stepwise:
        """One that trains the same."""
        return Stepwise(lambda key: self.model.create(key, self.problem.shape), self.problem, self.train, **how)

    def fit(self, trainer: Stepwise, folder: Path) -> Fitted:
        """Train in a folder, from where it stands there; stopped after the step at which the trainer halts."""
        run, checkpoints = RunFolder(folder), Checkpoints(folder / "checkpoints")
        return fit(trainer, checkpoints, run.append_metrics, run.truncate_metrics, Stopping(trainer.halt))

    def resumed(self, halt: int) -> None:
        """Stop one after a step, and resume it. Raises Fault where it is not the same."""
        one, wanted = self.whole
        seen, folder = {}, self.folder / str(halt)
        # One program serves all: what is resumed is looked at, not the compiler.
        try:
            self.fit(self.trainer(halt=halt, seen=seen, compiled=one.compiled), folder)
        except Interrupted:
            # Another trainer, as in another process.
            found = self.fit(self.trainer(seen=seen, compiled=one.compiled), folder)
        else:
            raise Fault("the signal was not heeded")
        _same("a step's metrics", one.seen, seen)
        _same("validation", _validated(self.folder / "whole"), _validated(folder))
        _same("the state", flatten(wanted.state), flatten(found.state))
        _same("the model", flatten(wanted.model), flatten(found.model))


def run(count: int, seed: int, folder: Path) -> Count:
    """Resume after `count` different steps, drawn by the seed."""
    trainings = [
        Training(folder / "average", Language(width=8, heads=2, layers=1, dropout=0.1), replace(TRAIN, average=3)),
        Training(folder / "patience", TINY.model, replace(TRAIN, patience=2, learning_rate=0.1, seeds=4)),
    ]
    drawn, used = np.random.default_rng(seed).permutation(np.arange(1, TRAIN.steps)), []

    def case(n: int) -> list[str]:
        training = trainings[n % 2]
        # One that is done early has fewer steps to be stopped after.
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
    """The validation in every row that has one. Raises Fault where a step is recorded twice or out of order."""
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
    """Raise Fault, naming the first that differs."""
    if wanted.keys() != found.keys():
        raise Fault(f"{what}: {sorted(map(str, wanted.keys() ^ found.keys()))[0]} stands in one alone")
    for name, value in wanted.items():
        if isinstance(value, dict):
            _same(f"{what}, {name}", value, found[name])
        elif np.asarray(value).tobytes() != np.asarray(found[name]).tobytes():
            raise Fault(f"{what}: {name} differs")
