"""Training steps for timing, as `attnlab run` makes them."""

from __future__ import annotations

from collections import Counter
from typing import Protocol

import jax

from attnlab.analysis import cost
from attnlab.analysis.measure import Program
from attnlab.models.interfaces import ModelConfig
from attnlab.models.shapes import Shape
from attnlab.training.config import Train
from attnlab.training.problem import TrainingProblem
from attnlab.training.shapes import Steps
from attnlab.training.trainer import DISPATCH, Trainer


class ShapedProblem(TrainingProblem, Protocol):
    """The data of a task, and their shape."""

    @property
    def shape(self) -> Shape:
        """The shape of the data, from which a model is created."""
        ...


def steps(model: ModelConfig, problem: ShapedProblem, batch_size: int, count: int = DISPATCH) -> Program:
    """Return a program that makes training steps of one lane in one dispatch.

    Args:
        model: The model's config.
        problem: The problem.
        batch_size: The number of examples in a batch.
        count: The number of steps, 1 … `DISPATCH`.

    Returns:
        The program, as `dispatch` returns it.

    Raises:
        ValueError: `count` is out of range.
    """
    if not 1 <= count <= DISPATCH:
        raise ValueError(f"{count=} must be 1 … {DISPATCH}")
    train = Train(steps=10**6, batch_size=batch_size, learning_rate=1e-3, schedule="constant", warmup=0, seeds=1)
    trainer = Trainer(lambda key: model.create(key, problem.shape), problem, train)
    taken, _ = trainer.batches(0, count)
    return dispatch(trainer, taken, count)


def dispatch(trainer: Trainer, batches: Steps, count: int = DISPATCH) -> Program:
    """Return a program that makes the training steps of a trainer in one dispatch.

    Each run continues from the state of the previous one, on the same batches. The answer is the loss of the last step.
    The memory is the peak of the compiled dispatch. The FLOPs are those of the loss and its gradients, without the
    optimiser. The bytes that any implementation must move are the batches, and the training state twice per step.

    Args:
        trainer: The trainer.
        batches: The batches of at least `count` steps.
        count: The number of steps, 1 … `DISPATCH`.
    """
    held = [trainer.start()]
    moved = count * (2 * cost.size(held[0]) + cost.size(batches.batches) // len(batches.kind))
    kinds = Counter(batches.kind[:count].tolist())
    flops = len(trainer.train.lanes) * sum(times * _flops(trainer, batches, kind) for kind, times in kinds.items())

    def run():
        held[0], metrics = trainer.advance(held[0], batches, count)
        return jax.block_until_ready(metrics["loss"])

    run()
    return Program(run, lambda: run()[-1], memory=trainer.memory_bytes, moved=moved, flops=flops)


def _flops(trainer: Trainer, batches: Steps, kind: int) -> int:
    """Return the FLOPs of the gradients of one lane, for a batch of a shape."""
    model = jax.eval_shape(trainer.create, jax.random.key(0))
    dtypes = {name: x.dtype for name, x in batches.batches.items()}
    batch = {name: jax.ShapeDtypeStruct(shape, dtypes[name]) for name, shape in batches.shapes[kind].items()}
    return cost.flops(jax.value_and_grad(trainer.problem.loss, has_aux=True), model, batch, jax.random.key(0))
