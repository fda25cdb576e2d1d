"""Count and cache the costs of experiments from traces, without running anything."""

from __future__ import annotations

import gc
import math
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Protocol, TypedDict, TypeVar, runtime_checkable

import jax
import numpy as np
from jaxtyping import Array, Bool, Int, PyTree

from attnlab.analysis import cost
from attnlab.lab.planning import precision
from attnlab.lab.planning.kept_flops import batch_flops
from attnlab.lab.study.study import Experiment
from attnlab.tasks.base.shapes import Pairs
from attnlab.tasks.base.task import Task, TaskData
from attnlab.training import state as lane

BUCKETS = 64  # steps whose batch shapes are counted, enough to sample every length bucket in proportion


Counted = TypeVar("Counted")


class Costs(TypedDict):
    """The costs of an experiment."""

    parameters: int
    """The number of parameters."""
    flops: int
    """The mean FLOPs of a training step of one lane."""
    state_bytes: int | None
    """The bytes of the decoding state, or None for a model that does not decode."""
    memory: int
    """The bytes of the training state of all lanes."""


@runtime_checkable
class TokenDecoder(Protocol):
    """A model that continues a sequence of tokens."""

    def start(self, length: int) -> PyTree:
        """Return the state before the first token, with room for `length` tokens."""
        ...


@runtime_checkable
class PairDecoder(Protocol):
    """A model that decodes a target from a source."""

    def start(self, source: Int[Array, " S"], source_keep: Bool[Array, " S"], length: int) -> PyTree:
        """Return the state before the first target token, with room for `length` tokens."""
        ...


def costs(experiment: Experiment, problem: TaskData) -> Costs:
    """Return the costs of one experiment, as `Ledger.costs` does, with its data already loaded."""
    return Ledger({experiment.task: problem}).costs(experiment)


@dataclass(frozen=True)
class Ledger:
    """The costs of experiments. Each is counted once and cached, because a trace takes half a second."""

    problems: dict[Task, TaskData] = field(default_factory=dict)
    """The loaded data, by task. Data of further tasks are loaded into it on demand."""
    known: dict[tuple, Any] = field(default_factory=dict)
    """The costs counted so far, by key."""
    clock: Callable[[Experiment, TaskData], float] | None = None
    """A function that measures the seconds of a training step, or None if they cannot be measured."""

    def problem(self, experiment: Experiment) -> TaskData:
        """Return the data of an experiment's task. Raises ValueError if its model needs 64 bits and jax uses 32."""
        precision.check(experiment.model)
        if experiment.task not in self.problems:
            self.problems[experiment.task] = experiment.task.load()
        return self.problems[experiment.task]

    def model(self, experiment: Experiment) -> PyTree:
        """Return the model as a tree of shapes."""
        problem = self.problem(experiment)
        make = lambda: jax.eval_shape(lambda: experiment.model.create(jax.random.key(0), problem.shape))
        return self._once(("model", experiment.task, experiment.model), make)

    def parameters(self, experiment: Experiment) -> int:
        """Return the number of parameters."""
        return cost.parameters(self.model(experiment))

    def flops(self, experiment: Experiment) -> int:
        """Return the mean FLOPs of a training step of one lane."""
        return self._once(self.at(experiment), lambda: self._step_flops(experiment))

    def at(self, experiment: Experiment) -> tuple:
        """Return the key of an experiment's FLOPs in `known`."""
        train = experiment.train
        # With pretraining steps the mean depends on their share of all steps, so the number of steps is in the key.
        steps = train.steps if self.problem(experiment).pretraining_steps else 0
        return "flops", experiment.task, experiment.model, train.batch_size, train.accumulate, steps

    def state(self, experiment: Experiment) -> int | None:
        """Return the bytes of the decoding state for the longest example, or None for a model that does not decode."""
        model, problem = self.model(experiment), self.problem(experiment)
        return self._once(("state", experiment.task, experiment.model), lambda: decoding_state(model, problem))

    def seconds(self, experiment: Experiment) -> float:
        """Return the seconds of a training step of all lanes. Raises ValueError without a clock."""
        if self.clock is None:
            raise ValueError("the time of a training step is measured only when the study runs")
        return self.clock(experiment, self.problem(experiment))

    def costs(self, experiment: Experiment) -> Costs:
        """Return the costs of an experiment.

        Returns:
            The costs. The memory does not include activations.
        """
        model, train = self.model(experiment), experiment.train
        begin = lambda model, seed, rate: lane.start(lambda key: model, train, seed, rate)
        state = jax.eval_shape(begin, model, np.uint32(0), np.float32(0))
        return {
            "parameters": self.parameters(experiment),
            "flops": self.flops(experiment),
            "state_bytes": self.state(experiment),
            # Parameters, two moments and a gradient of every lane. Activations are not included.
            "memory": len(train.lanes) * (cost.size(state) + cost.size(model)),
        }

    def _step_flops(self, experiment: Experiment) -> int:
        # The weighted mean over pretraining and other steps, and over the batch shapes that each of them has.
        problem, model, train = self.problem(experiment), self.model(experiment), experiment.train
        gradient = lambda model, batch: jax.value_and_grad(problem.loss, has_aux=True)(model, batch, jax.random.key(0))
        counts: dict[frozenset, int] = {}

        def mean(first: int, last: float) -> float:
            found = self._batches(experiment, first, last)
            for shapes in found.keys() - counts.keys():
                count = partial(cost.flops, gradient, model, dict(shapes))
                counts[shapes] = batch_flops(experiment, problem, shapes, count)
            return sum(times * counts[shapes] for shapes, times in found.items()) / found.total()

        pretraining = min(problem.pretraining_steps, train.steps)
        whole = (train.steps - pretraining) * mean(pretraining, math.inf)
        whole += pretraining * mean(0, pretraining) if pretraining else 0
        return round(train.accumulate * whole / train.steps)

    def _batches(self, experiment: Experiment, first: int, last: float) -> Counter:
        # How often each batch shape occurs. The count does not depend on the model, so it is cached for all models.
        problem, size = self.problem(experiment), experiment.train.batch_size

        def shapes(step: int) -> frozenset:
            batch = problem.batch(0, step, size)
            return frozenset((name, jax.ShapeDtypeStruct(x.shape, x.dtype)) for name, x in batch.items())

        steps = [n for n in range(first, first + BUCKETS) if n < last]
        return self._once(("batches", experiment.task, size, first, last), lambda: Counter(map(shapes, steps)))

    def _once(self, at: tuple, count: Callable[[], Counted]) -> Counted:
        """Return the cached value of a key, computing it on first use."""
        if at not in self.known:
            with _uncollected():
                self.known[at] = count()
        return self.known[at]


def decoding_state(model: PyTree, problem: TaskData) -> int | None:
    """Return the bytes of the state for decoding one example of maximal length, or None if the model cannot decode."""
    shape = problem.shape
    if isinstance(shape, Pairs):
        if not isinstance(model, PairDecoder):
            return None
        source = jax.ShapeDtypeStruct((shape.source_length,), "int32")
        keep = jax.ShapeDtypeStruct((shape.source_length,), "bool")
        return cost.size(jax.eval_shape(lambda m, s, k: m.start(s, k, shape.target_length), model, source, keep))
    return (
        cost.size(jax.eval_shape(lambda m: m.start(shape.length), model)) if isinstance(model, TokenDecoder) else None
    )


@contextmanager
def _uncollected() -> Iterator[None]:
    """Disable Python's garbage collector, which would take a quarter of the time of a trace."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()
