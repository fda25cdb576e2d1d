"""Associative recall: which value followed this key before."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from attnlab.data.names import PARTS, check_part
from attnlab.data.rng import generator
from attnlab.data.synthetic import recall
from attnlab.tasks.base import checks
from attnlab.tasks.base.batching import equal_batches
from attnlab.tasks.base.drawn import fingerprint
from attnlab.tasks.base.metrics import ACCURACY
from attnlab.tasks.base.parts import evaluation_sizes
from attnlab.tasks.base.shapes import Tokens
from attnlab.tasks.base.task import Task
from attnlab.tasks.base.text_interface import Batch
from attnlab.tasks.synthetic.questions import SymbolQuestions

EXAMINED = 250  # sequences in an evaluation batch


@dataclass(frozen=True)
class Recall(Task):
    """Associative recall (MQAR): "k1 v5 k2 v0 k1" → "v5". Scored by accuracy.

    Key-value pairs are followed by keys whose values are to be predicted. Every sequence has its own dictionary, in
    which two keys may have the same value. It begins with `pairs` pairs in random order. If there are more pairs than
    keys, each key occurs once and some occur again with the same value. The keys of `queries` of these pairs follow, at
    positions drawn uniformly from the rest of the sequence. Only these positions are scored. Training also predicts the
    value of each key that occurs again among the pairs, because it is known by then. Training never repeats a sequence.

    The defaults are the single question of Ba et al. 2016, at the size of Hedgehog's Table 2 (Zhang et al. 2024:
    vocabulary 40, length 128), which gives no further details. `vocabulary=256 pairs=4 queries=4 length=64` has the
    sizes of the small form of multi-query associative recall (MQAR, Arora et al. 2023). That task mostly asks soon
    after the pairs, and uses no value twice.
    """

    vocabulary: int = 40
    """The number of symbols. It is even: half of them are keys and half are values."""
    pairs: int = 63
    """The number of key-value pairs in a sequence."""
    queries: int = 1
    """The number of keys that are queried, at most `pairs`."""
    length: int = 0
    """The number of tokens of a sequence. 0 means just enough for the pairs and the queries."""
    valid_examples: int = 500
    """The number of validation sequences."""
    test_examples: int = 2000
    """The number of test sequences."""
    seed: int = 0
    """The seed of the data, in 0 … 2³²−1."""
    by_distance: bool = field(default=False, repr=False)  # not in the repr, hence not in the data's fingerprint
    """Whether the test is also scored by octaves of distance.

    "accuracy.16" is the accuracy of queries 16 … 31 tokens after the last earlier occurrence of their key.
    """

    def __post_init__(self):
        checks.counts(self, ["vocabulary"], least=4, most=1_000_000)
        checks.counts(self, ["pairs", "queries"], most=65_536)
        checks.counts(self, ["length"], least=0, most=1_000_000)
        checks.examples(self, ["valid", "test"])
        checks.seed(self)
        if self.vocabulary % 2:
            raise ValueError(
                f"task.vocabulary={self.vocabulary} must be even: half of the symbols are keys, half are values"
            )
        if self.queries > self.pairs:
            raise ValueError(f"task.queries={self.queries} must be at most task.pairs={self.pairs}")
        if self.length and self.length < self.least:
            raise ValueError(
                f"task.length={self.length} must be at least {self.least}, for task.pairs={self.pairs} and "
                f"task.queries={self.queries}; 0 selects this minimum"
            )

    @property
    def least(self) -> int:
        """The number of tokens that the pairs and the queries take."""
        return 2 * self.pairs + self.queries

    def load(self) -> RecallData:
        """Returns the data. Training sequences are generated when they are requested."""
        return RecallData(self)


class RecallData(SymbolQuestions):
    """The data of `Recall`: sequences in which some positions ask for the next token."""

    metric = ACCURACY

    def __init__(self, task: Recall):
        self.task, self.half = task, task.vocabulary // 2
        super().__init__(["·", *(f"{kind}{n}" for kind in "kv" for n in range(self.half))])
        self.length = task.length or task.least
        self.shape = Tokens(task.vocabulary + 1, self.length)
        self._parts = {part: self._questions(size, part) for part, size in evaluation_sizes(task).items()}
        self.fingerprint = fingerprint(task, [self.batch(0, 0, 8), *self.eval_batches("test", 8)])

    def batch(self, seed: int, step: int, size: int) -> Batch:
        """Returns {"tokens", "answers": [B T] int32, "scored": [B T]}.

        "scored" is also true at keys that occur again among the pairs.
        """
        drawn = self._draw(size, "train", seed, step)
        return drawn | {"scored": drawn.pop("might")}

    def eval_batches(self, part: str, limit: int | None = None) -> list[Batch]:
        """Returns batches like those of training. The rows that fill up the last batch are not scored."""
        return equal_batches(self._examined(part, limit), EXAMINED)

    def score(self, part: str, answers: list[Batch], limit: int | None = None) -> dict[str, float]:
        """Returns {"accuracy"}: the fraction of correct answers.

        For the test part with `by_distance`, also that of each octave.
        """
        whole = self._examined(part, limit)
        predicted = np.concatenate([np.asarray(answer["tokens"]) for answer in answers])[: len(whole["tokens"])]
        right = (predicted == whole["answers"])[whole["scored"]]
        octaves = {}
        if self.task.by_distance and part == "test":
            octave = np.log2(self._distances(whole)).astype(int)
            octaves = {f"accuracy.{2**n}": float(right[octave == n].mean()) for n in np.unique(octave).tolist()}
        return {"accuracy": float(np.mean(right))} | octaves

    def _distances(self, whole: Batch) -> np.ndarray:
        """Returns the distance of each question from the last earlier occurrence of its key.

        The order is that of `scored`.
        """
        rows, places = np.nonzero(whole["scored"])
        keys = whole["tokens"][:, : 2 * self.task.pairs : 2]
        same = keys[rows] == whole["tokens"][rows, places][:, None]
        return places - 2 * (self.task.pairs - 1 - np.argmax(same[:, ::-1], axis=1))

    def _draw(self, size: int, part: str, *more: int) -> Batch:
        task = self.task
        random = generator(task.seed, PARTS.index(part), *more)
        drawn = recall.draw(random, size, self.half, self.half, task.pairs, task.queries, self.length)
        return dict(zip(("tokens", "answers", "scored", "might"), drawn, strict=True))

    def _questions(self, size: int, part: str) -> Batch:
        """Returns an evaluation part, in which only the questions after the pairs count."""
        drawn = self._draw(size, part)
        return {name: drawn[name] for name in ("tokens", "answers", "scored")}

    def _examined(self, part: str, limit: int | None) -> Batch:
        check_part(part, limit)
        return {name: x[:limit] for name, x in self._parts[part].items()}
