"""Selective copying: repeat the tokens that stand among noise, in order."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from attnlab.data.synthetic import copying
from attnlab.tasks.base import checks
from attnlab.tasks.base.metrics import TOKEN_ACCURACY
from attnlab.tasks.base.text_interface import Batch
from attnlab.tasks.synthetic.lengths import SEQUENCE_ACCURACY, LengthData, LengthTask


@dataclass(frozen=True)
class SelectiveCopying(LengthTask):
    """Tokens at random places among noise, repeated at the end: "· a · · b | |" → "a b". Scored by accuracy.

    Each sequence has `length` tokens, of which `copied` are to be repeated and the others are noise. A marker for each
    of these follows, at which the model predicts them in their order. The noise is what makes copying depend on the
    content: the distances vary. The primary metric "token_accuracy" is the fraction of correct tokens,
    "sequence_accuracy" that of sequences without an error. Both are means over the tested lengths, and
    "token_accuracy.256" is that of length 256. Validation uses the training length.

    The task is that of Gu and Dao 2023 (Mamba, section 4.1.1), after Jing et al. 2019 and Arjovsky, Shah and Bengio
    2016. Published is `task.length=4096 task.tested=4096 task.copied=16`, with a vocabulary of 16.
    """

    length: int = 128
    """The number of tokens of training and validation sequences, without the markers."""
    tested: tuple[int, ...] = (128, 256, 512)
    """The lengths of the test sequences, all different. Each length has `test_examples` sequences."""
    vocabulary: int = 16
    """The number of tokens, including the noise and the marker, at least 4."""
    copied: int = 8
    """The number of tokens to copy, at most every length."""

    def __post_init__(self):
        super().__post_init__()
        checks.counts(self, ["vocabulary"], least=4, most=1_000_000)
        checks.counts(self, ["copied"], most=65_536)
        if self.copied > (least := min(self.length, *self.tested)):
            raise ValueError(f"task.copied={self.copied} must be at most {least}, the smallest length")

    def load(self) -> SelectiveCopyingData:
        """Returns the data. Sequences are generated when they are requested."""
        return SelectiveCopyingData(self)


class SelectiveCopyingData(LengthData[SelectiveCopying]):
    """The data of `SelectiveCopying`. The markers at the end ask for the tokens to copy."""

    metric = TOKEN_ACCURACY
    more_metrics = (SEQUENCE_ACCURACY,)
    accuracy_name = TOKEN_ACCURACY.name

    def __init__(self, task: SelectiveCopying):
        super().__init__(task, ["·", "|", *(f"t{n}" for n in range(task.vocabulary - 2))], more=task.copied)

    def draw(self, random: np.random.Generator, size: int, length: int, part: str) -> Batch:
        """Returns {"tokens", "answers": [N T] int32, "scored": [N T]}, where T is `length` + `copied`."""
        tokens, copied = copying.draw(random, size, self.task.vocabulary, length, self.task.copied)
        answers, scored = np.zeros_like(tokens), np.zeros(tokens.shape, bool)
        answers[:, length:], scored[:, length:] = copied, True
        return {"tokens": tokens, "answers": answers, "scored": scored}
