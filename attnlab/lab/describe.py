"""What the variants of a study would cost; nothing runs."""

from __future__ import annotations

from functools import partial
from typing import Any

import jax

from attnlab.analysis import cost
from attnlab.lab import precision
from attnlab.lab.study import Experiment, Study
from attnlab.tasks.base import Pairs, Problem
from attnlab.training.trainer import DISPATCH, Trainer

BUCKETS = 64  # dispatches whose batches are looked at: enough to meet every bucket in proportion


def describe(study: Study) -> list[dict[str, Any]]:
    """For each variant: parameters, FLOPs of a training step of one lane, decoding state, memory of training's state.

    Raises what loading the data raises, and ValueError for numbers that jax is not set to compute in.
    """
    problems: dict[Any, Problem] = {}
    rows = []
    for name, experiment in study.variants().items():
        precision.check(experiment.model)
        if experiment.task not in problems:
            problems[experiment.task] = experiment.task.load()
        rows.append({"variant": name} | costs(experiment, problems[experiment.task]))
    return rows


def costs(experiment: Experiment, problem: Problem) -> dict[str, Any]:
    """The costs of one experiment."""
    train = experiment.train
    trainer = Trainer(partial(_create, experiment, problem), problem, train)
    state = jax.eval_shape(trainer.start)
    model = jax.eval_shape(lambda: _create(experiment, problem, jax.random.key(0)))
    return {
        "parameters": cost.parameters(model),
        "flops": step_flops(experiment, problem, model),
        "state_bytes": decoding_state(model, problem),
        # Parameters, two moments and a gradient of every lane; activations come on top.
        "memory": cost.size(state) + len(train.lanes) * cost.size(model),
    }


def step_flops(experiment: Experiment, problem: Problem, model: Any) -> int:
    """FLOPs of one training step of one lane, forward and backward, the mean over the buckets in their proportion."""
    train = experiment.train
    counts: dict[tuple, int] = {}
    total = 0
    for n in range(BUCKETS):
        batch = problem.batch(0, n * DISPATCH, train.batch_size)
        shapes = tuple((name, x.shape) for name, x in batch.items())
        if shapes not in counts:
            gradient = lambda model, batch: jax.value_and_grad(problem.loss, has_aux=True)(
                model, batch, jax.random.key(0)
            )
            counts[shapes] = cost.flops(gradient, model, batch)
        total += counts[shapes]
    return train.accumulate * total // BUCKETS


def decoding_state(model: Any, problem: Problem) -> int | None:
    """Bytes that are remembered while one example is decoded; None for a model that does not decode."""
    if not hasattr(model, "start"):
        return None
    if not isinstance(problem.shape, Pairs):
        return cost.size(jax.eval_shape(lambda m: m.start(problem.shape.length), model))
    source = jax.ShapeDtypeStruct((problem.shape.source_length,), "int32")
    keep = jax.ShapeDtypeStruct((problem.shape.source_length,), "bool")
    return cost.size(jax.eval_shape(lambda m, s, k: m.start(s, k, problem.shape.target_length), model, source, keep))


def _create(experiment: Experiment, problem: Problem, key: Any) -> Any:
    return experiment.model.create(key, problem.shape)
