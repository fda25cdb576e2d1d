"""Problems of sorting whose examples are drawn as they are asked for."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any

import numpy as np

from attnlab.data.names import PARTS, check_part
from attnlab.data.rng import generator
from attnlab.tasks.base.batching import even
from attnlab.tasks.base.classification import NONE, ClassificationData
from attnlab.tasks.base.drawn import fingerprint
from attnlab.tasks.base.task import Batch, Classes

EXAMINED, POSITIONS = 256, 2**15  # examples of an examination's batch, and positions in it: maps are their squares


class GeneratedData(ClassificationData):
    """A training batch is a function of (seed, step), so none comes again; the examinations are drawn once.

    The task has a `seed`, `valid_examples` and `test_examples`; `positions` are those of one example.
    """

    def __init__(self, task: Any, classes: Sequence[str], shape: Classes, positions: int):
        super().__init__(classes)
        self.task, self.shape = task, shape
        self._most = max(1, min(EXAMINED, POSITIONS // positions))
        self._parts = {part: self._drawn(getattr(task, f"{part}_examples"), part) for part in PARTS[1:]}
        self.fingerprint = fingerprint(task, [self.batch(0, 0, 8), *self.eval_batches("test", 8)])
        common = np.bincount(self._parts["test"]["label"], minlength=len(classes))
        self.notes = (
            f"the commonest class of the test is {self.classes[common.argmax()]}: {common.max() / common.sum():.1%}",
        )

    @abstractmethod
    def draw(self, random: np.random.Generator, size: int, part: str) -> Batch:
        """Examples of a part: {"source" [N …], "keep" [N T] where there is any, "label" [N] int32}."""

    def batch(self, seed: int, step: int, size: int) -> Batch:
        """Examples drawn for that seed and step."""
        return self._drawn(size, "train", seed, step)

    def eval_batches(self, part: str, limit: int | None = None) -> list[Batch]:
        """The first `limit` examples of the part, the last batch filled up with such as ask nothing."""
        check_part(part, limit)
        return even({name: x[:limit] for name, x in self._parts[part].items()}, self._most, label=NONE)

    def inputs(self, part: str, limit: int | None = None) -> list[str]:
        """The symbols of each example with a space between them."""
        examples = {name: x[:limit] for name, x in self._parts[part].items()}
        count = len(examples["label"])
        return [self.written({name: x[n : n + 1] for name, x in examples.items()}) for n in range(count)]

    def written(self, example: Batch) -> str:
        """One example, a batch of one, as text."""
        return " ".join(self.tokens(example)["source"])

    def _drawn(self, size: int, part: str, *more: int) -> Batch:
        return self.draw(generator(self.task.seed, PARTS.index(part), *more), size, part)
