"""Training steps for timing, as `attnlab run` makes them."""

from __future__ import annotations

from typing import Protocol

import jax

from attnlab.analysis.measure import Program
from attnlab.models.interfaces import ModelConfig
from attnlab.models.shapes import Shape
from attnlab.training.config import Train
from attnlab.training.problem import TrainingProblem
from attnlab.training.trainer import DISPATCH, Trainer


class ShapedProblem(TrainingProblem, Protocol):
    """The data of a task, and their shape."""

    @property
    def shape(self) -> Shape:
        """The shape of the data, from which a model is created."""
        ...


def steps(model: ModelConfig, problem: ShapedProblem, batch_size: int, count: int = DISPATCH) -> Program:
    """Return a program that makes training steps of one lane in one dispatch.

    Each run continues from the state of the previous one, on the same batches. The answer is the loss of the last step.
    The memory is the peak of the compiled dispatch.

    Args:
        model: The model's config.
        problem: The problem.
        batch_size: The number of examples in a batch.
        count: The number of steps, 1 … `DISPATCH`.

    Raises:
        ValueError: `count` is out of range.
    """
    if not 1 <= count <= DISPATCH:
        raise ValueError(f"{count=} must be 1 … {DISPATCH}")
    train = Train(steps=10**6, batch_size=batch_size, learning_rate=1e-3, schedule="constant", warmup=0, seeds=1)
    trainer = Trainer(lambda key: model.create(key, problem.shape), problem, train)
    taken, _ = trainer.batches(0, count)
    held = [trainer.start()]

    def run():
        held[0], metrics = trainer.advance(held[0], taken, count)
        return jax.block_until_ready(metrics["loss"])

    run()
    return Program(run, lambda: run()[-1], memory=trainer.memory_bytes)
