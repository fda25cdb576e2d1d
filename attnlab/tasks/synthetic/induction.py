"""The induction task: which token followed the trigger at its first occurrence."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from attnlab.data.names import PARTS, check_part
from attnlab.data.rng import generator
from attnlab.data.synthetic import induction
from attnlab.tasks.base import checks
from attnlab.tasks.base.batching import even
from attnlab.tasks.base.drawn import fingerprint
from attnlab.tasks.base.metrics import ACCURACY
from attnlab.tasks.base.parts import evaluation_sizes
from attnlab.tasks.base.shapes import Tokens
from attnlab.tasks.base.task import Task
from attnlab.tasks.base.text_interface import Batch
from attnlab.tasks.synthetic.questions import SymbolQuestions

EXAMINED = 128  # sequences in an evaluation batch


@dataclass(frozen=True)
class Induction(Task):
    """A trigger occurs once in a sequence and again at its end: "c a ! d b !" → "d". Scored by accuracy.

    The test has sequences of several lengths. "accuracy" is the mean over all lengths, and "accuracy.256" is that of
    length 256. Validation uses the training length.

    The task follows Gu and Dao 2023 (Mamba, section 4.1.2: vocabulary 16, trained at 256, tested to 2^20), with smaller
    sizes.
    """

    vocabulary: int = 16
    """The number of tokens, including the trigger, at least 2."""
    length: int = 64
    """The length of training and validation sequences, at least 3."""
    tested: tuple[int, ...] = (64, 128, 256, 512, 1024)
    """The lengths of the test sequences, all different. Each length has `test_examples` sequences."""
    valid_examples: int = 256
    """The number of validation sequences."""
    test_examples: int = 256
    """The number of test sequences of each length."""
    seed: int = 0
    """The seed of the data, in 0 … 2³²−1."""

    def __post_init__(self):
        checks.counts(self, ["vocabulary"], least=2, most=1_000_000)
        checks.counts(self, ["length"], least=3, most=1_000_000)
        checks.examples(self, ["valid", "test"])
        checks.seed(self)
        if not self.tested or any(type(n) is not int or not 3 <= n <= 1_000_000 for n in self.tested):
            raise ValueError(f"task.tested={self.tested!r} must list whole numbers in 3 … 1000000")
        if len(set(self.tested)) < len(self.tested):
            raise ValueError(f"task.tested={self.tested!r} lists a length twice")

    def load(self) -> InductionData:
        """Returns the data. Sequences are generated when they are requested."""
        return InductionData(self)


class InductionData(SymbolQuestions):
    """The data of `Induction`. The last token of a sequence asks which token followed it before."""

    metric = ACCURACY

    def __init__(self, task: Induction):
        super().__init__(["!", *(f"t{n}" for n in range(1, task.vocabulary))])
        self.task = task
        self.shape = Tokens(task.vocabulary, max(task.length, *task.tested))
        self.fingerprint = fingerprint(task, [self.batch(0, 0, 8), *self.eval_batches("test", 8)])

    def batch(self, seed: int, step: int, size: int) -> Batch:
        """Returns {"tokens", "answers": [B T] int32, "asked": [B T]}. "asked" is true at the last token only."""
        return self._draw(size, self.task.length, "train", seed, step)

    def eval_batches(self, part: str, limit: int | None = None) -> list[Batch]:
        """Returns the first `limit` sequences of every length of the part, one length after another."""
        return [batch for whole in self._examined(part, limit).values() for batch in even(whole, EXAMINED)]

    def score(self, part: str, answers: list[Batch], limit: int | None = None) -> dict[str, float]:
        """Returns {"accuracy"} over all lengths, and for the test part also "accuracy.LENGTH" for each length."""
        examined, rest, right = self._examined(part, limit), list(answers), {}
        for length, whole in examined.items():
            count = len(whole["tokens"])
            mine, rest = rest[: -(-count // EXAMINED)], rest[-(-count // EXAMINED) :]
            predicted = np.concatenate([np.asarray(answer["tokens"])[:, -1] for answer in mine])[:count]
            right[length] = predicted == whole["answers"][:, -1]
        means = {f"accuracy.{length}": float(found.mean()) for length, found in right.items()}
        return {"accuracy": float(np.mean(list(means.values())))} | (means if part == "test" else {})

    def _draw(self, size: int, length: int, part: str, *more: int) -> Batch:
        random = generator(self.task.seed, PARTS.index(part), *more)
        tokens, last = induction.draw(random, size, self.task.vocabulary, length)
        answers, asked = np.zeros_like(tokens), np.zeros(tokens.shape, bool)
        answers[:, -1], asked[:, -1] = last, True
        return {"tokens": tokens, "answers": answers, "asked": asked}

    def _examined(self, part: str, limit: int | None) -> dict[int, Batch]:
        """Returns the sequences of a part by length."""
        check_part(part, limit)
        lengths = self.task.tested if part == "test" else (self.task.length,)
        count = evaluation_sizes(self.task)[part]
        return {
            length: {name: x[:limit] for name, x in self._draw(count, length, part, length).items()}
            for length in lengths
        }
