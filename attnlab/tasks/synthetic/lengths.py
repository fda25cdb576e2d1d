"""Tasks that are trained on sequences of one length and tested at several lengths."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Generic, Protocol, TypeVar

import numpy as np

from attnlab.console.metric import Metric
from attnlab.data.names import PARTS, check_part
from attnlab.data.rng import generator
from attnlab.tasks.base import checks
from attnlab.tasks.base.batching import equal_batches
from attnlab.tasks.base.drawn import fingerprint
from attnlab.tasks.base.parts import EvaluationSizes, evaluation_sizes
from attnlab.tasks.base.shapes import Tokens
from attnlab.tasks.base.task import Row, Task
from attnlab.tasks.base.text_interface import Batch
from attnlab.tasks.synthetic.questions import SymbolQuestions

SEQUENCE_ACCURACY = Metric("sequence_accuracy", "%", 0, 1, higher=True)
# The most sequences and the most positions in an evaluation batch. Attention maps grow with the square of a sequence.
EXAMINED, POSITIONS = 128, 2**16


@dataclass(frozen=True)
class LengthTask(Task):
    """The base class of tasks that are trained at one length and tested at several."""

    shortest: ClassVar[int] = 2
    """The smallest length that the task supports."""

    length: int = 64
    """The length of training and validation sequences."""
    tested: tuple[int, ...] = (64, 128, 256, 512)
    """The lengths of the test sequences, all different. Each length has `test_examples` sequences."""
    valid_examples: int = 256
    """The number of validation sequences."""
    test_examples: int = 256
    """The number of test sequences of each length."""
    seed: int = 0
    """The seed of the data, in 0 … 2³²−1."""

    def __post_init__(self):
        checks.lengths(self, self.shortest)
        checks.examples(self, ["valid", "test"])
        checks.seed(self)


class LengthConfig(EvaluationSizes, Protocol):
    """A task with the fields of `LengthTask`."""

    @property
    def length(self) -> int:
        """The length of training and validation sequences."""
        ...

    @property
    def tested(self) -> tuple[int, ...]:
        """The lengths of the test sequences."""
        ...

    @property
    def seed(self) -> int:
        """The seed of the data."""
        ...


Config = TypeVar("Config", bound=LengthConfig)


class LengthData(SymbolQuestions, Generic[Config]):
    """Sequences that are generated when they are requested, and scored by length.

    A training batch is a function of (seed, step), so that no batch repeats. `score` reports the mean of each metric
    over all lengths, and for the test part also "NAME.LENGTH" for each length. `accuracy_name` is the fraction of
    correct answers. "sequence_accuracy", if it is declared, is the fraction of sequences all of whose answers are
    correct.

    Args:
        task: The task.
        words: The name of each token.
        more: The number of tokens that follow the `length` tokens of a sequence.
    """

    def __init__(self, task: Config, words: Sequence[str], more: int = 0):
        super().__init__(words)
        self.task = task
        self.shape = Tokens(len(words), max(task.length, *task.tested) + more)
        self.fingerprint = fingerprint(task, [self.batch(0, 0, 8), *self.eval_batches("test", 8)])

    @abstractmethod
    def draw(self, random: np.random.Generator, size: int, length: int, part: str) -> Batch:
        """Generates sequences of one length.

        Returns:
            {"tokens", "answers": [N T] int32, "scored": [N T]}, where "scored" marks the positions that count.
        """

    def batch(self, seed: int, step: int, size: int) -> Batch:
        """Generates the training batch of a seed and step: {"tokens", "answers": [B T] int32, "scored": [B T]}."""
        return self._drawn(size, self.task.length, "train", seed, step)

    def eval_batches(self, part: str, limit: int | None = None) -> list[Batch]:
        """Returns the first `limit` sequences of every length of the part, one length after another."""
        return [batch for whole in self._examined(part, limit).values() for batch in _split(whole)]

    def score(self, part: str, answers: list[Batch], limit: int | None = None) -> dict[str, float]:
        """Returns the mean of each metric over all lengths, and for the test part also that of each length."""
        rest, found = list(answers), {}
        for length, whole in self._examined(part, limit).items():
            batches = len(_split(whole))
            mine, rest = rest[:batches], rest[batches:]
            joined = {name: np.concatenate([np.asarray(answer[name]) for answer in mine]) for name in mine[0]}
            found[length] = self.measure(part, whole, {name: x[: len(whole["tokens"])] for name, x in joined.items()})
        names = next(iter(found.values()))
        means = {name: float(np.mean([each[name] for each in found.values()])) for name in names}
        parts = {f"{name}.{length}": value for length, each in found.items() for name, value in each.items()}
        return means | (parts if part == "test" else {})

    def questions(self, batch: Batch) -> tuple[np.ndarray, np.ndarray]:
        """Returns the correct answers of an evaluation batch and which of them are scored, both [B T]."""
        return batch["answers"], batch["scored"]

    def measure(self, part: str, whole: Batch, answer: Batch) -> dict[str, float]:
        """Computes the metrics of all sequences of one length.

        Args:
            part: "valid" or "test".
            whole: The sequences.
            answer: The model's answers to them.
        """
        expected, scored = self.questions(whole)
        right = answer["tokens"] == expected
        found = {self.accuracy_name: float(right[scored].mean())}
        if SEQUENCE_ACCURACY.name in self.metrics:
            found[SEQUENCE_ACCURACY.name] = float((right | ~scored).all(axis=1).mean())
        return found

    def rows(self, part: str, answers: list[Batch], limit: int | None = None) -> list[Row]:
        """Returns a row for each sequence: its tokens, the correct answers and the predicted ones."""
        said = lambda ids: " ".join(self.words[n] for n in ids)
        found = []
        for batch, answer in zip(self.eval_batches(part, limit), answers, strict=True):
            expected, scored = self.questions(batch)
            predicted = np.asarray(answer["tokens"])
            for n in np.flatnonzero(scored.any(axis=1)):
                on = scored[n]
                found.append(Row(said(batch["tokens"][n]), said(expected[n, on]), said(predicted[n, on])))
        return found

    def counted(self, part: str, limit: int | None = None) -> int | None:
        """Returns the number of questions, or of sequences if the primary metric is their accuracy."""
        scored = [self.questions(batch)[1] for batch in self.eval_batches(part, limit)]
        whole = self.metric == SEQUENCE_ACCURACY
        return sum(int((on.any(axis=1) if whole else on).sum()) for on in scored)

    def _drawn(self, size: int, length: int, part: str, *more: int) -> Batch:
        return self.draw(generator(self.task.seed, PARTS.index(part), *more), size, length, part)

    def _examined(self, part: str, limit: int | None) -> dict[int, Batch]:
        """Returns the sequences of a part by length."""
        check_part(part, limit)
        lengths = self.task.tested if part == "test" else (self.task.length,)
        count = evaluation_sizes(self.task)[part]
        return {
            length: {name: x[:limit] for name, x in self._drawn(count, length, part, length).items()}
            for length in lengths
        }


def _split(whole: Batch) -> list[Batch]:
    """Returns sequences of one length as batches. The rows that fill up the last batch are not scored."""
    return equal_batches(whole, max(1, min(EXAMINED, POSITIONS // whole["tokens"].shape[1])))
