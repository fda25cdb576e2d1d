"""Associative recall: what came after this the last time?"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from attnlab.data.names import PARTS, check_part
from attnlab.data.rng import generator
from attnlab.data.synthetic import recall
from attnlab.tasks.base import checks
from attnlab.tasks.base.batching import even
from attnlab.tasks.base.drawn import fingerprint
from attnlab.tasks.base.task import Batch, Task, Tokens
from attnlab.tasks.synthetic.questions import SymbolQuestions

EXAMINED = 250  # sequences of an examination's batch


@dataclass(frozen=True)
class Recall(Task):
    """Key, value, key, value, … then a key, whose value comes next: "k1 v5 k2 v0 k1" → "v5"; scored by accuracy.

    Half of the `vocabulary` are keys, half values; every sequence has a dictionary of its own. `pairs` pairs are
    told, in any order: where there are more than keys, each key once and some again, with the same value. Then the keys
    of `queries` of them are asked for, at places drawn evenly among those left of `length` tokens (0: there are no
    others). Only those places are scored; training also asks for each key that is told again, whose value is known by
    then.
    The defaults are the single question of Ba et al. 2016 at the size of Hedgehog's Table 2 (Zhang et al. 2024:
    vocabulary 40, length 128), which prints no more of its set-up; `vocabulary=256 pairs=4 queries=4 length=64` has
    the sizes of the small form of multi-query recall (Arora et al. 2023), which asks mostly soon after the telling, and
    tells no value twice; here two keys may have one value. Training never repeats a sequence. With `by_distance` the
    test is scored by octaves of distance besides: "accuracy.16" is over the questions 16 … 31 tokens behind where their
    key was told last.
    """

    vocabulary: int = 40
    pairs: int = 63
    queries: int = 1
    length: int = 0
    valid_examples: int = 500
    test_examples: int = 2000
    seed: int = 0
    by_distance: bool = field(default=False, repr=False)  # no part of what the data are

    def __post_init__(self):
        checks.counts(self, ["vocabulary"], least=4, most=1_000_000)
        checks.counts(self, ["pairs", "queries"], most=65_536)
        checks.counts(self, ["length"], least=0, most=1_000_000)
        checks.examples(self, ["valid", "test"])
        checks.seed(self)
        if self.vocabulary % 2:
            raise ValueError(f"task.vocabulary={self.vocabulary} must be even: half are keys, half values")
        if self.queries > self.pairs:
            raise ValueError(f"task.queries={self.queries} must be at most task.pairs={self.pairs}")
        if self.length and self.length < self.least:
            raise ValueError(
                f"task.length={self.length} must be at least {self.least}, for task.pairs={self.pairs} and "
                f"task.queries={self.queries}; 0 is just that"
            )

    @property
    def least(self) -> int:
        """The tokens that pairs and queries take."""
        return 2 * self.pairs + self.queries

    def load(self) -> RecallData:
        """The sequences are drawn as they are asked for."""
        return RecallData(self)


class RecallData(SymbolQuestions):
    """Sequences in which some places ask for the next token: the problem of `Recall`."""

    metric, higher = "accuracy", True

    def __init__(self, task: Recall):
        self.task, self.half = task, task.vocabulary // 2
        super().__init__(["·", *(f"{kind}{n}" for kind in "kv" for n in range(self.half))])
        self.length = task.length or task.least
        self.shape = Tokens(task.vocabulary + 1, self.length)
        self._parts = {part: self._questions(getattr(task, f"{part}_examples"), part) for part in PARTS[1:]}
        self.fingerprint = fingerprint(task, [self.batch(0, 0, 8), *self.eval_batches("test", 8)])

    def batch(self, seed: int, step: int, size: int) -> Batch:
        """{"tokens", "answers": [B T] int32, "asked": [B T]}; asked are keys that are told again too."""
        drawn = self._draw(size, "train", seed, step)
        return drawn | {"asked": drawn.pop("might")}

    def eval_batches(self, part: str, limit: int | None = None) -> list[Batch]:
        """Batches like those of training, the last one filled up with sequences that ask nothing."""
        return even(self._examined(part, limit), EXAMINED)

    def score(self, part: str, answers: list[Batch], limit: int | None = None) -> dict[str, float]:
        """{"accuracy"}: the share of questions answered rightly; of the test by octaves of distance, if asked."""
        whole = self._examined(part, limit)
        said = np.concatenate([np.asarray(answer["tokens"]) for answer in answers])[: len(whole["tokens"])]
        right = (said == whole["answers"])[whole["asked"]]
        octaves = {}
        if self.task.by_distance and part == "test":
            octave = np.log2(self._distances(whole)).astype(int)
            octaves = {f"accuracy.{2**n}": float(right[octave == n].mean()) for n in np.unique(octave).tolist()}
        return {"accuracy": float(np.mean(right))} | octaves

    def _distances(self, whole: Batch) -> np.ndarray:
        """How far behind the last telling of its key each question stands, in the order of `asked`."""
        rows, places = np.nonzero(whole["asked"])
        told = whole["tokens"][:, : 2 * self.task.pairs : 2]
        same = told[rows] == whole["tokens"][rows, places][:, None]
        return places - 2 * (self.task.pairs - 1 - np.argmax(same[:, ::-1], axis=1))

    def _draw(self, size: int, part: str, *more: int) -> Batch:
        task = self.task
        random = generator(task.seed, PARTS.index(part), *more)
        drawn = recall.draw(random, size, self.half, self.half, task.pairs, task.queries, self.length)
        return dict(zip(("tokens", "answers", "asked", "might"), drawn, strict=True))

    def _questions(self, size: int, part: str) -> Batch:
        """An examination: only the questions at the end count."""
        drawn = self._draw(size, part)
        return {name: drawn[name] for name in ("tokens", "answers", "asked")}

    def _examined(self, part: str, limit: int | None) -> Batch:
        check_part(part, limit)
        return {name: x[:limit] for name, x in self._parts[part].items()}
