"""The induction task: which token followed the trigger at its first occurrence."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from attnlab.data.synthetic import induction
from attnlab.tasks.base import checks
from attnlab.tasks.base.metrics import ACCURACY
from attnlab.tasks.base.task import Task
from attnlab.tasks.base.text_interface import Batch
from attnlab.tasks.synthetic.lengths import LengthData


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
        checks.lengths(self, least=3)
        checks.examples(self, ["valid", "test"])
        checks.seed(self)

    def load(self) -> InductionData:
        """Returns the data. Sequences are generated when they are requested."""
        return InductionData(self)


class InductionData(LengthData[Induction]):
    """The data of `Induction`. The last token of a sequence asks which token followed it before."""

    metric = ACCURACY

    def __init__(self, task: Induction):
        super().__init__(task, ["!", *(f"t{n}" for n in range(1, task.vocabulary))])

    def draw(self, random: np.random.Generator, size: int, length: int, part: str) -> Batch:
        """Returns {"tokens", "answers": [N T] int32, "scored": [N T]}. "scored" is true at the last token only."""
        tokens, last = induction.draw(random, size, self.task.vocabulary, length)
        answers, scored = np.zeros_like(tokens), np.zeros(tokens.shape, bool)
        answers[:, -1], scored[:, -1] = last, True
        return {"tokens": tokens, "answers": answers, "scored": scored}
