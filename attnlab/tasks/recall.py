"""Associative recall: what came after this the last time?"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from attnlab.data import codecs, recall
from attnlab.data.files import DataError
from attnlab.data.vocabulary import RESERVED, Vocabulary
from attnlab.tasks import checks
from attnlab.tasks.base import Batch, Task, Tokens
from attnlab.tasks.prediction import Prediction

PARTS = ("train", "valid", "test")
EXAMINED = 250  # sequences of an examination's batch


@dataclass(frozen=True)
class Recall(Task):
    """Key, value, key, value, … then a key, whose value comes next: "k1 v5 k2 v0 k1" → "v5"; scored by accuracy.

    Half of the `vocabulary` are keys, half values; every sequence has a dictionary of its own. `pairs` pairs are
    told, keys again with the same value once all have been told, then the keys of `queries` of them asked for, at
    places drawn evenly among those left of `length` tokens (0: there are no others). Only those places are scored;
    training also asks for each key that is told again, whose value is known by then.
    The defaults are the single question of Ba et al. 2016 at the size of Hedgehog's Table 2 (Zhang et al. 2024:
    vocabulary 40, length 128), which prints no more of its set-up; `vocabulary=256 pairs=4 queries=4 length=64` is
    the small form of multi-query recall (Arora et al. 2023). Training never repeats a sequence.
    """

    vocabulary: int = 40
    pairs: int = 63
    queries: int = 1
    length: int = 0
    valid_examples: int = 500
    test_examples: int = 2000
    seed: int = 0

    def __post_init__(self):
        checks.counts(self, ["vocabulary"], least=4, most=1_000_000)
        checks.counts(self, ["pairs", "queries"], most=65_536)
        checks.counts(self, ["length"], least=0, most=1_000_000)
        checks.counts(self, ["valid_examples", "test_examples"])
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

    def load(self) -> Recollection:
        """The sequences are drawn as they are asked for."""
        return Recollection(self)


class Recollection(Prediction):
    """Sequences in which some places ask for the next token: the problem of `Recall`."""

    metric, higher = "accuracy", True

    def __init__(self, task: Recall):
        self.task, self.half = task, task.vocabulary // 2
        self.length = task.length or task.least
        self.shape = Tokens(task.vocabulary + 1, self.length)
        words = ("·", *(f"{kind}{n}" for kind in "kv" for n in range(self.half)))
        self.words, self._vocabulary = words, Vocabulary(words)
        self._parts = {part: self._questions(getattr(task, f"{part}_examples"), part) for part in PARTS[1:]}
        self.fingerprint = _fingerprint(self)

    def batch(self, seed: int, step: int, size: int) -> Batch:
        """{"tokens", "answers": [B T] int32, "asked": [B T]}; asked are keys that are told again too."""
        drawn = self._draw(size, "train", seed, step)
        return drawn | {"asked": drawn.pop("might")}

    def answer(self, model: Any, batch: Batch) -> Batch:
        """{"tokens": [B T]}: the token it takes for the next one, at every place."""
        import jax
        import jax.numpy as jnp

        said = jax.vmap(lambda tokens: jnp.argmax(self._scores(model, tokens, None), axis=-1))
        return {"tokens": said(jnp.asarray(batch["tokens"]))}

    def examination(self, part: str, limit: int | None = None) -> list[Batch]:
        """Batches like those of training, the last one filled up with sequences that ask nothing."""
        whole = self._examined(part, limit)
        count = len(whole["tokens"])
        size = min(EXAMINED, count)
        filled = {
            name: np.concatenate([x, np.zeros((-count % size, *x.shape[1:]), x.dtype)]) for name, x in whole.items()
        }
        return [{name: x[n : n + size] for name, x in filled.items()} for n in range(0, count, size)]

    def score(self, part: str, answers: list[Batch], limit: int | None = None) -> dict[str, float]:
        """{"accuracy"}: the share of questions answered rightly."""
        whole = self._examined(part, limit)
        said = np.concatenate([np.asarray(answer["tokens"]) for answer in answers])[: len(whole["tokens"])]
        return {"accuracy": float(np.mean((said == whole["answers"])[whole["asked"]]))}

    def ask(self, text: str) -> Batch:
        """One sequence, "k1 v5 k2 v0 k1", whose last token asks. Raises DataError for symbols there are not."""
        words = text.split()
        if not words:
            raise DataError(f"the input {text!r} is empty")
        tokens = np.array([self._vocabulary.encode(words)], np.int32) - RESERVED
        asked = np.zeros(tokens.shape, bool)
        asked[0, -1] = True
        return {"tokens": tokens, "answers": np.zeros_like(tokens), "asked": asked}

    def tell(self, answer: Batch) -> str:
        """What comes after the last token."""
        return self.words[int(np.asarray(answer["tokens"])[0, -1])]

    def tokens(self, batch: Batch) -> dict[str, list[str]]:
        """The symbols of row 0, which reads itself."""
        words = [self.words[n] for n in np.asarray(batch["tokens"])[0]]
        return {"source": words, "target": words}

    def save(self, folder: Path) -> None:
        """Write `vocabulary.json`: {"tokens": [symbols]}."""
        codecs.save(Path(folder) / "vocabulary.json", {"tokens": self._vocabulary})

    def check(self, folder: Path) -> None:
        """Raise DataError where the folder's `vocabulary.json` is not of this data."""
        codecs.check(Path(folder) / "vocabulary.json", {"tokens": self._vocabulary})

    def _draw(self, size: int, part: str, *more: int) -> Batch:
        task = self.task
        seeds = np.random.SeedSequence([task.seed, PARTS.index(part), *more])
        random = np.random.Generator(np.random.PCG64(seeds))
        drawn = recall.draw(random, size, self.half, self.half, task.pairs, task.queries, self.length)
        return dict(zip(("tokens", "answers", "asked", "might"), drawn, strict=True))

    def _questions(self, size: int, part: str) -> Batch:
        """An examination: only the questions at the end count."""
        drawn = self._draw(size, part)
        return {name: drawn[name] for name in ("tokens", "answers", "asked")}

    def _examined(self, part: str, limit: int | None) -> Batch:
        if part not in PARTS[1:] or (limit is not None and limit < 1):
            raise ValueError(f"{part=} must be 'valid' or 'test', {limit=} None or 1 or more")
        return {name: x[:limit] for name, x in self._parts[part].items()}


def _fingerprint(problem: Recollection) -> str:
    """Of the task and of what its generator makes of it first: another version of it is other data."""
    digest = hashlib.sha256(repr(problem.task).encode())
    for batch in (problem.batch(0, 0, 8), *problem.examination("test", 8)):
        for name, values in batch.items():
            digest.update(name.encode() + np.ascontiguousarray(values).tobytes())
    return digest.hexdigest()
