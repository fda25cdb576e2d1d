"""Classification tasks whose examples are generated when they are requested."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Generic, Protocol, TypeVar

import numpy as np

from attnlab.data.names import PARTS, check_part
from attnlab.data.rng import generator
from attnlab.tasks.base.batching import equal_batches
from attnlab.tasks.base.classification import NONE, ClassificationData
from attnlab.tasks.base.drawn import fingerprint
from attnlab.tasks.base.parts import EvaluationSizes, evaluation_sizes
from attnlab.tasks.base.shapes import Classes
from attnlab.tasks.base.text_interface import Batch

# The most examples and the most positions in an evaluation batch. Attention maps grow with the square of a sequence.
EXAMINED, POSITIONS = 256, 2**15


class GeneratedTask(EvaluationSizes, Protocol):
    """A task whose examples are generated from a seed."""

    @property
    def seed(self) -> int:
        """The seed of the data."""
        ...


Config = TypeVar("Config", bound=GeneratedTask)


class GeneratedData(ClassificationData, Generic[Config]):
    """Classification data that are generated.

    A training batch is a function of (seed, step), so that no batch repeats. The validation and test parts are
    generated once.

    Args:
        task: The task, with fields `seed`, `valid_examples` and `test_examples`.
        classes: The names of the classes.
        shape: The shape of the task.
        positions: The number of positions of one example, which bounds the size of an evaluation batch.
    """

    def __init__(self, task: Config, classes: Sequence[str], shape: Classes, positions: int):
        super().__init__(classes)
        self.task, self.shape = task, shape
        self._most = max(1, min(EXAMINED, POSITIONS // positions))
        self._parts = {part: self._drawn(size, part) for part, size in evaluation_sizes(task).items()}
        self.fingerprint = fingerprint(task, [self.batch(0, 0, 8), *self.eval_batches("test", 8)])
        common = np.bincount(self._parts["test"]["label"], minlength=len(classes))
        self.notes = (
            f"the most frequent class of the test part is {self.classes[common.argmax()]} "
            f"({common.max() / common.sum():.1%} of the examples)",
        )

    @abstractmethod
    def draw(self, random: np.random.Generator, size: int, part: str) -> Batch:
        """Generates examples of a part.

        Returns:
            {"source": [N, ...], "keep": [N T] if there is padding, "label": [N] int32}.
        """

    def batch(self, seed: int, step: int, size: int) -> Batch:
        """Generates the training batch of a seed and step."""
        return self._drawn(size, "train", seed, step)

    def eval_batches(self, part: str, limit: int | None = None) -> list[Batch]:
        """Returns the first `limit` examples of the part. The rows that fill up the last batch are not scored."""
        check_part(part, limit)
        return equal_batches({name: x[:limit] for name, x in self._parts[part].items()}, self._most, label=NONE)

    def inputs(self, part: str, limit: int | None = None) -> list[str]:
        """Returns the symbols of each example, separated by spaces."""
        examples = {name: x[:limit] for name, x in self._parts[part].items()}
        count = len(examples["label"])
        return [self.written({name: x[n : n + 1] for name, x in examples.items()}) for n in range(count)]

    def written(self, example: Batch) -> str:
        """Returns a batch of one example as text."""
        return " ".join(self.tokens(example)["source"])

    def _drawn(self, size: int, part: str, *more: int) -> Batch:
        return self.draw(generator(self.task.seed, PARTS.index(part), *more), size, part)
