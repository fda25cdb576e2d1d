"""The interfaces of tasks: `Task` is a configuration, and `TaskData` is loaded data.

Importing this module does not import jax.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import replace
from typing import Any, ClassVar, NamedTuple

from attnlab.console.metric import Metric
from attnlab.documented import Documented
from attnlab.tasks.base.text_interface import Batch, TextInterface

LOSS = Metric("loss")


class Row(NamedTuple):
    """One example of an evaluation and a model's answer to it, as text."""

    input: str
    """The input, or its name if it is not text."""
    expected: str | None
    """The correct answer, or None if it is unknown. Several correct answers are separated by " ||| "."""
    answer: str | None
    """The answer of the model, or None if the model does not answer with text."""
    figure: float | None = None
    """A number that belongs to the answer, for example its probability. `TaskData.figure` names it."""


class Task(ABC, metaclass=Documented):
    """A task: which data are used, and how much of them.

    Subclasses are frozen dataclasses and hold plain configuration. `load` reads or generates the data.
    """

    training_only_fields: ClassVar[tuple[str, ...]] = ()
    """The names of the fields that do not change the evaluation data.

    Variants of a study that differ in other fields are evaluated on different data and are not compared.
    """
    missing_values: ClassVar[dict[str, object]] = {}
    """Values of fields that older run folders lack.

    It holds the value with which those runs were made, if it differs from the default.
    """

    fixed_units: ClassVar[tuple[Any, ...]] = ()
    """The units (`TokenizerSpec`) of sources and of targets, if the task has text pairs and no fields for these."""

    @property
    def unread(self) -> dict[str, object]:
        """The fields that `load` does not read given the other fields, with the value that marks each as unused."""
        return {}

    @abstractmethod
    def load(self) -> TaskData:
        """Reads or generates the data.

        Raises:
            DataError: If the data are not available.
        """

    def with_test(self, problem: Any, file: str) -> TaskData:
        """Returns the data with the examples of a user's file as the test part.

        The file has the format of the task's own files. If the format permits it, the file may hold inputs without
        answers; `score` then returns {}.

        Args:
            problem: The loaded data.
            file: The path of the file.

        Returns:
            The new data. Their `notes` are about that file.

        Raises:
            DataError: If the trained model cannot be given an example. The message names the file, and the line if
                there is one.
            NotImplementedError: If the task reads no files.
        """
        raise NotImplementedError(
            f"task={type(self).__name__} generates its own examples and does not read other files"
        )

    def text_interface(self, vocabulary: dict[str, object], where: str) -> TextInterface | None:
        """Returns the interface to inputs and answers of a model trained on this task, without loading the data.

        Args:
            vocabulary: The vocabulary of the data, as `TextInterface.vocabulary` returned it.
            where: The name of the vocabulary's file, with which error messages begin.

        Returns:
            The interface, or None if the model cannot be used without the data.

        Raises:
            DataError: If the vocabulary does not belong to such a task.
        """
        return None


class TaskData(TextInterface):
    """The data of a task in batches, the loss and the metrics."""

    fingerprint: str
    """The sha256 of the data in hexadecimal."""
    metric: Metric
    """The primary metric of `score`: the one that chooses learning rates and that verdicts compare."""
    more_metrics: tuple[Metric, ...] = ()
    """The further metrics of `score` and of `loss`."""
    notes: tuple[str, ...] = ()
    """Messages for the user about how the data were read."""
    pretraining_steps: int = 0
    """The number of first training steps with another objective than the one that is scored."""
    figure: str = ""
    """The name of the number in each of `rows`, or ""."""

    @property
    def metrics(self) -> dict[str, Metric]:
        """All metrics by name, including the loss.

        A part of a metric, for example "accuracy.short", is reported under the name of the metric and a dot. It shares
        the declaration of the metric.
        """
        return {metric.name: metric for metric in (LOSS, self.metric, *self.more_metrics)}

    def declared(self, key: str) -> Metric:
        """Returns the declaration of a key of `score`: of a metric, or of a part, which has that of its metric.

        A metric that is not declared has no unit, no range, and a lower value is better.
        """
        whole = max((name for name in self.metrics if f"{key}.".startswith(f"{name}.")), key=len, default="")
        return replace(self.metrics[whole], name=key) if whole else Metric(key)

    @property
    def first_steps(self) -> tuple[int, ...]:
        """Steps whose batches together have every shape that a training batch can have.

        This is one step if all shapes are equal.
        """
        return (0,)

    @abstractmethod
    def batch(self, seed: int, step: int, size: int) -> Batch:
        """Returns a training batch [size, ...].

        The batch is a function of the arguments, and its shapes are functions of step and size only. Each example
        occurs once in an epoch.

        Args:
            seed: The seed of the lane.
            step: The step, from 0.
            size: The number of examples.
        """

    @abstractmethod
    def eval_batches(self, part: str, limit: int | None = None) -> list[Batch]:
        """Returns the evaluation batches of a part. All have one shape, and the last one is padded.

        The examples are always the same. A limited number is sampled at random, so that a file sorted by class gives a
        representative sample (`attnlab.tasks.base.sampled`).

        Args:
            part: "valid" or "test".
            limit: The number of examples. None returns all.
        """

    @abstractmethod
    def score(self, part: str, answers: list[Batch], limit: int | None = None) -> dict[str, float]:
        """Computes the metrics of a part.

        Args:
            part: "valid" or "test".
            answers: The model's answers, in the order of `eval_batches(part, limit)`.
            limit: The number of examples, as given to `eval_batches`.

        Returns:
            The metrics by name. Rates are in 0 … 1.
        """

    def map_rows(self, batch: Batch) -> list[int]:
        """Returns the rows of an evaluation batch whose attention maps are stored, three at most."""
        return list(range(min(3, len(next(iter(batch.values()))))))

    def rows(self, part: str, answers: list[Batch], limit: int | None = None) -> list[Row]:
        """Returns the examples of a part with the model's answers, as text.

        The order is that of `eval_batches(part, limit)`. The list is empty if an example and its answer cannot be
        written on one line, for example a generated image.
        """
        return []

    def count_scored(self, part: str, limit: int | None = None) -> int | None:
        """Returns the number of scored items, if the primary metric is the fraction of correct items.

        Otherwise returns None.
        """
        return None

    def pictures(self, batch: Batch, answer: Batch) -> dict[str, bytes]:
        """Returns pictures of the answers to an evaluation batch, as PNG by caption.

        If the batch is shorter, the pictures show fewer examples.
        """
        return {}
