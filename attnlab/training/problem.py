"""What training needs of the data of a task. `attnlab.tasks.base.task.TaskData` has it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

import numpy as np
from jaxtyping import Array, PRNGKeyArray, PyTree

Batch = dict[str, np.ndarray]


class Metric(Protocol):
    """A metric of `score`. By the primary metric, training stops, chooses and averages."""

    @property
    def name(self) -> str:
        """The key of the metric in the result of `score`."""
        ...

    @property
    def higher(self) -> bool:
        """Whether a higher value is better."""
        ...

    @property
    def low(self) -> float:
        """The least possible value."""
        ...

    @property
    def high(self) -> float:
        """The largest possible value."""
        ...

    @property
    def is_fraction(self) -> bool:
        """Whether values are printed times a hundred."""
        ...

    @property
    def title(self) -> str:
        """The name in words."""
        ...

    def format(self, value: float) -> str:
        """Returns a value as text."""
        ...


class TrainingProblem(Protocol):
    """The data of a task."""

    @property
    def metric(self) -> Metric:
        """The primary metric."""
        ...

    @property
    def pretraining_steps(self) -> int:
        """The number of first training steps with another objective than the one that is scored."""
        ...

    @property
    def answer(self) -> Callable[..., PyTree]:
        """The model's answer to an evaluation batch, `answer(model, batch)`, and `decoder=` if answers are decoded."""
        ...

    @property
    def first_steps(self) -> tuple[int, ...]:
        """Steps whose batches together have every shape that a training batch can have."""
        ...

    def batch(self, seed: int, step: int, size: int) -> Batch:
        """Returns a training batch."""
        ...

    def eval_batches(self, part: str, limit: int | None = None) -> Sequence[Batch]:
        """Returns the evaluation batches of a part."""
        ...

    def loss(self, model: PyTree, batch: Batch, key: PRNGKeyArray | None) -> tuple[Array, dict[str, Array]]:
        """Returns the loss of a batch, and further scalars by name."""
        ...

    def score(self, part: str, answers: list[PyTree], limit: int | None = None) -> dict[str, float]:
        """Returns the metrics of a part by name."""
        ...

    def declared(self, key: str) -> Metric:
        """Returns the metric of a key of `score`."""
        ...


def check_scores(problem: TrainingProblem, scores: Mapping[str, float]) -> None:
    """Raises ValueError if scores lack the primary metric, or a fraction is outside of its declared range.

    A percentage instead of a fraction would be printed times a hundred, with an interval that ends at 100%.
    """
    if problem.metric.name not in scores:
        raise ValueError(f"score must return the primary metric {problem.metric.name!r}, got {', '.join(scores)}")
    for name, value in scores.items():
        metric = problem.declared(name)
        # The tolerance is for rounding. A diverged model may score NaN.
        if metric.is_fraction and (value < metric.low - 1e-6 or value > metric.high + 1e-6):
            raise ValueError(
                f"score returns {name}={value:g}, but the metric is declared in {metric.low:g} … {metric.high:g}; "
                "a metric with the unit % or points is a fraction"
            )
