"""What the variants of a study would cost; nothing runs."""

from __future__ import annotations

import gc
import math
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from queue import LifoQueue
from typing import TYPE_CHECKING, Any

import jax
import numpy as np

from attnlab.analysis import cost
from attnlab.lab.planning import precision
from attnlab.lab.study.study import Experiment
from attnlab.tasks.base.task import Pairs, TaskData
from attnlab.training import state as lane

if TYPE_CHECKING:
    pass

BUCKETS = 64  # steps whose batches are looked at: enough to meet every bucket in proportion


def costs(experiment: Experiment, problem: TaskData) -> dict[str, Any]:
    """The costs of one experiment."""
    return Ledger({experiment.task: problem}).costs(experiment)


@dataclass(frozen=True)
class Ledger:
    """What experiments cost, each counted once: tracing takes most of a second.

    `problems` holds what tasks loaded; what is asked of another task is loaded into it. `clock(experiment, problem)`
    measures the seconds of a training step; None: they are not known. In `expected` wait the experiments whose FLOPs
    will be asked for, the last on top, each with where it is written down.
    """

    problems: dict[Any, TaskData] = field(default_factory=dict)
    known: dict[tuple, Any] = field(default_factory=dict)
    clock: Callable[[Experiment, TaskData], float] | None = None
    expected: LifoQueue = field(default_factory=LifoQueue)

    def problem(self, experiment: Experiment) -> TaskData:
        """What its task loads. Raises ValueError for numbers that jax is not set to compute in."""
        precision.check(experiment.model)
        if experiment.task not in self.problems:
            self.problems[experiment.task] = experiment.task.load()
        return self.problems[experiment.task]

    def model(self, experiment: Experiment) -> Any:
        """Its model as shapes."""
        problem = self.problem(experiment)
        make = lambda: jax.eval_shape(lambda: experiment.model.create(jax.random.key(0), problem.shape))
        return self._once(("model", experiment.task, experiment.model), make)

    def parameters(self, experiment: Experiment) -> int:
        """The numbers that it learns."""
        return cost.parameters(self.model(experiment))

    def flops(self, experiment: Experiment) -> int:
        """FLOPs of a training step of one lane."""
        return self._once(self.at(experiment), lambda: self._step_flops(experiment))

    def at(self, experiment: Experiment) -> tuple:
        """Where `known` holds its FLOPs."""
        train = experiment.train
        # Where the first steps are of another kind, their share of all counts.
        steps = train.steps if self.problem(experiment).pretraining_steps else 0
        return "flops", experiment.task, experiment.model, train.batch_size, train.accumulate, steps

    def expect(self, experiment: Experiment) -> None:
        """Say that its FLOPs will be asked for."""
        self.expected.put((self.at(experiment), experiment))

    def state(self, experiment: Experiment) -> int | None:
        """Bytes of its decoding state, with room for the longest example; None for a model that does not decode."""
        model, problem = self.model(experiment), self.problem(experiment)
        return self._once(("state", experiment.task, experiment.model), lambda: decoding_state(model, problem))

    def seconds(self, experiment: Experiment) -> float:
        """Seconds of a training step of all lanes. Raises ValueError without a clock."""
        if self.clock is None:
            raise ValueError("how long a step takes is measured when the study runs")
        return self.clock(experiment, self.problem(experiment))

    def costs(self, experiment: Experiment) -> dict[str, Any]:
        """All of them, by name."""
        model, train = self.model(experiment), experiment.train
        begin = lambda model, seed, rate: lane.start(lambda key: model, train, seed, rate)
        state = jax.eval_shape(begin, model, np.uint32(0), np.float32(0))
        return {
            "parameters": self.parameters(experiment),
            "flops": self.flops(experiment),
            "state_bytes": self.state(experiment),
            # Parameters, two moments and a gradient of every lane; activations come on top.
            "memory": len(train.lanes) * (cost.size(state) + cost.size(model)),
        }

    def _step_flops(self, experiment: Experiment) -> int:
        # The mean over the steps that prepare and those that do not, and over the buckets of each in their proportion.
        problem, model, train = self.problem(experiment), self.model(experiment), experiment.train
        gradient = lambda model, batch: jax.value_and_grad(problem.loss, has_aux=True)(model, batch, jax.random.key(0))
        counts: dict[frozenset, int] = {}

        def mean(first: int, last: float) -> float:
            found = self._batches(experiment, first, last)
            for shapes in found.keys() - counts.keys():
                counts[shapes] = cost.flops(gradient, model, dict(shapes))
            return sum(times * counts[shapes] for shapes, times in found.items()) / found.total()

        pretraining = min(problem.pretraining_steps, train.steps)
        whole = (train.steps - pretraining) * mean(pretraining, math.inf)
        whole += pretraining * mean(0, pretraining) if pretraining else 0
        return round(train.accumulate * whole / train.steps)

    def _batches(self, experiment: Experiment, first: int, last: float) -> Counter:
        # How often batches have which shapes. They are drawn once for all models.
        problem, size = self.problem(experiment), experiment.train.batch_size

        def shapes(step: int) -> frozenset:
            batch = problem.batch(0, step, size)
            return frozenset((name, jax.ShapeDtypeStruct(x.shape, x.dtype)) for name, x in batch.items())

        steps = [n for n in range(first, first + BUCKETS) if n < last]
        return self._once(("batches", experiment.task, size, first, last), lambda: Counter(map(shapes, steps)))

    def _once(self, at: tuple, count: Callable[[], Any]) -> Any:
        if at not in self.known:
            with _uncollected():
                self.known[at] = count()
        return self.known[at]


def decoding_state(model: Any, problem: TaskData) -> int | None:
    """Bytes that are remembered while one example is decoded; None for a model that does not decode."""
    if not hasattr(model, "start"):
        return None
    if not isinstance(problem.shape, Pairs):
        return cost.size(jax.eval_shape(lambda m: m.start(problem.shape.length), model))
    source = jax.ShapeDtypeStruct((problem.shape.source_length,), "int32")
    keep = jax.ShapeDtypeStruct((problem.shape.source_length,), "bool")
    return cost.size(jax.eval_shape(lambda m, s, k: m.start(s, k, problem.shape.target_length), model, source, keep))


@contextmanager
def _uncollected() -> Iterator[None]:
    """Without Python's search for cycles: a trace makes so many objects that a quarter of its time would go there."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()
