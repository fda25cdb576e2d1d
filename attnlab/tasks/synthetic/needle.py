"""A needle in a haystack: which value does a sentence give to a key, somewhere in a long text?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from attnlab.console.metric import Metric
from attnlab.data.synthetic import needle
from attnlab.tasks.base import checks
from attnlab.tasks.base.metrics import ACCURACY
from attnlab.tasks.base.text_interface import Batch
from attnlab.tasks.synthetic.lengths import LengthData, LengthTask

DEPTH_ACCURACY = Metric("accuracy_at_depth", "%", 0, 1, higher=True)


@dataclass(frozen=True)
class Needle(LengthTask):
    """A sentence hidden in a text, and a question: "… the number of k3 is v5 . … the number of k3 is" → "v5".

    The text consists of sentences of made-up words, drawn for each sequence, whose words are tokens. It hides sentences
    that give a number to a key, and ends in a question about one of them. Depth is where that sentence belongs in the
    text, from 0, the beginning, to 1, the end. It moves forward to the beginning of the sentence at that place. In
    training and validation depths are uniform. In the test the sequences take turns through `depths` depths.

    "accuracy" is the mean over the tested lengths, "accuracy.256" that of length 256. "accuracy_at_depth.25" is that of
    sequences whose needle is a quarter into the text, and "accuracy_at_depth.25.256" that of length 256 among them.
    Validation uses the training length.

    The test is that of Kamradt 2023, and with several needles the multi-key form of RULER (Hsieh et al. 2024).
    """

    shortest: ClassVar[int] = needle.SHORTEST

    keys: int = 16
    """The number of keys."""
    values: int = 16
    """The number of values."""
    needles: int = 1
    """The number of sentences that give a value to a key, all of different keys. The question is about one of them.

    With a single one, the value can be found without reading the key.
    """
    depths: int = 5
    """The number of depths that are tested, at equal distances: 5 are 0, 25, 50, 75 and 100%."""

    def __post_init__(self):
        super().__post_init__()
        checks.counts(self, ["keys", "values"], least=2, most=65_536)
        checks.counts(self, ["needles"], most=self.keys)
        checks.counts(self, ["depths"], least=2, most=101)
        least = needle.SHORTEST + (self.needles - 1) * len(needle.PHRASE)
        if min(self.length, *self.tested) < least:
            raise ValueError(f"task.needles={self.needles} require lengths of at least {least} tokens")

    def load(self) -> NeedleData:
        """Returns the data. Texts are generated when they are requested."""
        return NeedleData(self)


class NeedleData(LengthData[Needle]):
    """The data of `Needle`. The last token of a sequence asks for the value that follows."""

    metric = ACCURACY
    more_metrics = (DEPTH_ACCURACY,)

    def __init__(self, task: Needle):
        drawn = needle.sentences(task.seed)
        said = {word for sentences in drawn.values() for sentence in sentences for word in sentence}
        phrase = [word for word in needle.PHRASE if "{" not in word]
        words = [*dict.fromkeys([*phrase, *sorted(said)])]
        self._keys, self._values = len(words), len(words) + task.keys
        words += [*(f"k{n}" for n in range(task.keys)), *(f"v{n}" for n in range(task.values))]
        ids = {word: n for n, word in enumerate(words)}
        self._end, self._phrase = ids[needle.END], np.array([ids.get(word, 0) for word in needle.PHRASE], np.int32)
        self._sentences = {
            part: [np.array([ids[word] for word in sentence], np.int32) for sentence in sentences]
            for part, sentences in drawn.items()
        }
        super().__init__(task, words)

    def draw(self, random: np.random.Generator, size: int, length: int, part: str) -> Batch:
        """Returns {"tokens", "answers": [N T] int32, "scored": [N T]}. "scored" is true at the last token only."""
        task = self.task
        filled = length - needle.SHORTEST - (task.needles - 1) * len(needle.PHRASE)
        tokens = np.zeros((size, length), np.int32)
        answers, scored = np.zeros_like(tokens), np.zeros(tokens.shape, bool)
        for n in range(size):
            needles = np.tile(self._phrase, (task.needles, 1))
            needles[:, needle.PHRASE.index("{key}")] = self._keys + random.permutation(task.keys)[: task.needles]
            values = self._values + random.integers(task.values, size=task.needles, dtype=np.int32)
            needles[:, needle.PHRASE.index("{value}")] = values
            depths = random.random(task.needles)
            if part == "test":
                depths[0] = n % task.depths / (task.depths - 1)
            hay = needle.hay(random, self._sentences[part], filled)
            text = needle.hide(hay, self._end, needles, depths)
            tokens[n] = np.concatenate([text, needles[0, : needle.ASKED]])
            answers[n, -1], scored[n, -1] = values[0], True
        return {"tokens": tokens, "answers": answers, "scored": scored}

    def measure(self, part: str, whole: Batch, answer: Batch) -> dict[str, float]:
        """Returns {"accuracy"}, and for the test part also "accuracy_at_depth.PERCENT" for each depth."""
        found = super().measure(part, whole, answer)
        if part == "test":
            right = answer["tokens"][:, -1] == whole["answers"][:, -1]
            for n in range(min(self.task.depths, len(right))):
                percent = round(100 * n / (self.task.depths - 1))
                found[f"{DEPTH_ACCURACY.name}.{percent}"] = float(right[n :: self.task.depths].mean())
        return found
