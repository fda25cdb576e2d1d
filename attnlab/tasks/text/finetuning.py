"""The data of sentence classification, with pretraining on masked words (Devlin et al. 2019)."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from copy import copy
from textwrap import shorten
from typing import TYPE_CHECKING

import numpy as np

from attnlab.console.metric import Metric
from attnlab.data.batches import Buckets, pad, rounded
from attnlab.data.io.files import DataError
from attnlab.data.names import check_part
from attnlab.data.repeats import ambiguous, repeated
from attnlab.data.rng import generator
from attnlab.data.text.example import Example, Parts
from attnlab.data.text.masking import Masking
from attnlab.data.text.units import Tokenizer, TokenizerSpec, Words
from attnlab.data.text.vocabulary import PAD, RESERVED, Vocabulary
from attnlab.tasks.base.batching import equal_batches
from attnlab.tasks.base.classification import NONE, ClassificationData
from attnlab.tasks.base.models import Classifier, MaskedWordModel
from attnlab.tasks.base.sampled import sampled
from attnlab.tasks.base.text_interface import Batch
from attnlab.tasks.base.token_prediction import TokenLosses, losses_of_logits
from attnlab.tasks.text.labelling import SentenceInterface, encoded, sentence_batch

if TYPE_CHECKING:
    from jaxtyping import Array, Float, PRNGKeyArray

EXAMINED = 256  # sentences in an evaluation batch
_DRAWS, _EXAMINATION = 1, 2  # separate the random masks of training from those of validation and test


class FinetuningData(SentenceInterface, ClassificationData):
    """Sentences with a class each. The first `masked` training steps predict masked words, the others classify.

    A model is called as `ClassificationData` says. For masked words, `fill(source, keep, places, key)` returns scores
    [P vocabulary].

    Args:
        parts: The examples of "train", "valid" and "test": a sentence, and its class as the only target.
        units: The tokenizer of sentences. The vocabulary is learned from "train" and `unlabelled` only.
        masked: The number of pretraining steps. Their sentences are those of "train" and `unlabelled`.
        unlabelled: Further sentences for pretraining.
        share: The fraction of the known symbols of a sentence that is masked. Training masks are a function of seed and
            step and differ at each occurrence. Evaluation masks are always the same.
        least: Words that occur fewer times become the unknown word, which also replaces words that never occur in
            training. With units of merged pairs, symbols that never occur in training are left out instead.
        buckets: The largest number of different batch lengths.
        read: Prepares an input of a user.

    Raises:
        DataError: If a part is empty, if no word is known, or if a class does not occur in "train".
    """

    more_metrics = (Metric("word_accuracy", "%", 0, 1, higher=True), Metric("masked_nats", low=0))

    def __init__(
        self,
        parts: Parts,
        units: TokenizerSpec,
        *,
        masked: int = 0,
        unlabelled: Sequence[str] = (),
        share: float = 0.15,
        least: int = 2,
        buckets: int = 2,
        read: Callable[[str], str] = str.strip,
    ):
        for part in ("train", "valid", "test"):
            if not parts.get(part):
                raise DataError(f"the part {part!r} has no sentences")
        texts = {part: [str(example.source) for example in parts[part]] for part in parts}
        self._texts = texts
        tokenizer = _fitted(units, [*texts["train"], *unlabelled], least)
        ids = {part: [encoded(tokenizer, text) for text in texts[part]] for part in texts}
        more = [encoded(tokenizer, text) for text in unlabelled]
        width = int(rounded(max(len(row) for rows in (*ids.values(), more) for row in rows)))
        super().__init__(sorted({str(example.targets[0]) for example in parts["train"]}), tokenizer, width, read)
        self.masked = self.pretraining_steps = masked
        self.masking = Masking(self.mask, RESERVED, self.unknown, share)
        self._known = pad([*ids["train"], *more])
        self._labels = {part: self._classes(parts[part]) for part in parts}
        self._sorted = Buckets([len(row) for row in ids["train"]], buckets)
        self._filled = Buckets([len(row) for row in [*ids["train"], *more]], buckets)
        self._examined = {part: pad(ids[part], width) for part in ("valid", "test")}
        self.fingerprint = _fingerprint(parts, unlabelled)
        read_too = {"the unlabelled text": unlabelled, "valid": texts["valid"], "test": texts["test"]}
        self.notes = (
            *ambiguous({part: _labelled(parts[part]) for part in texts}, "text"),
            *repeated(texts),
            *repeated(read_too, within="the unlabelled text"),
            *(note for part in self._examined for note in self._unread(part, texts[part], ids[part])),
        )

    @property
    def first_steps(self) -> tuple[int, ...]:
        """The first step of each bucket, in both phases."""
        later = (self.masked + step for step in self._sorted.first_steps)
        return (*(self._filled.first_steps if self.masked else ()), *later)

    def batch(self, seed: int, step: int, size: int) -> Batch:
        """Returns a training batch.

        Returns:
            During pretraining {"hidden", "keep": [B T], "places", "answers": [B P]}, later {"source", "keep", "label"}.
            Answers that are PAD are not scored.
        """
        if step >= self.masked:
            rows, (width,) = self._sorted.batch(seed, step - self.masked, size)
            return sentence_batch(self._known[rows, :width]) | {"label": self._labels["train"][rows]}
        rows, (width,) = self._filled.batch(seed, step, size)
        batch = sentence_batch(self._known[rows, :width])
        return self._hidden(batch.pop("source"), seed, _DRAWS, step) | batch

    def loss(
        self, model: Classifier, batch: Batch, key: PRNGKeyArray | None
    ) -> tuple[Float[Array, ""], dict[str, Array]]:
        """Computes the cross-entropy in nats, the mean over what is scored.

        Returns:
            The loss, and {"word_accuracy"} for masked words or {"accuracy"} for classes.
        """
        import jax

        if "label" in batch:
            return super().loss(model, batch, key)
        keys = None if key is None else jax.random.split(key, len(batch["answers"]))
        losses = self._words(model, batch, keys)
        return losses.loss, {"word_accuracy": losses.accuracy}

    def answer(self, model: Classifier, batch: Batch) -> Batch:
        """Returns {"label", "probability": [B]} as `ClassificationData` does.

        If words are masked, it also returns {"nats": [B]}, the sum of their costs.
        """
        import jax.numpy as jnp

        found = super().answer(model, batch)
        if "hidden" in batch:
            losses = self._words(model, batch, None)
            found["nats"] = jnp.where(losses.scored, losses.nats, 0).sum(axis=1)
        return found

    def eval_batches(self, part: str, limit: int | None = None) -> list[Batch]:
        """Returns batches {"source", "keep", "label"} of one width.

        With pretraining they also have {"hidden", "places", "answers"}.
        """
        check_part(part, limit)
        source = self._examined[part]
        whole = sentence_batch(source) | {"label": self._labels[part]}
        if self.masked:
            whole |= self._hidden(source, 0, _EXAMINATION)
        rows = sampled(len(source), limit)
        return equal_batches({name: values[rows] for name, values in whole.items()}, EXAMINED, label=NONE)

    def score(self, part: str, answers: list[Batch], limit: int | None = None) -> dict[str, float]:
        """Returns {"accuracy"} of classes, and with pretraining {"masked_nats"}, the mean cost of a masked word."""
        found = super().score(part, answers, limit)
        if self.masked:
            count = sum(int((batch["answers"] != PAD).sum()) for batch in self.eval_batches(part, limit))
            nats = sum(float(np.asarray(answer["nats"], np.float64).sum()) for answer in answers)
            found["masked_nats"] = nats / max(1, count)
        return found

    def with_test(self, examples: Sequence[Example], path: str, lines: Sequence[int]) -> FinetuningData:
        """Returns the data with other examples as the test part.

        Args:
            examples: The examples. An example without targets has an unknown class.
            path: The path of their file, for messages.
            lines: The line of each example in the file.

        Raises:
            DataError: If a sentence is longer than any of the task's own files. The message names the first one.
        """
        texts = [str(example.source) for example in examples]
        ids, width = [encoded(self.tokenizer, text) for text in texts], self.shape.source.length  # type: ignore[union-attr]
        for line, row in zip(lines, ids, strict=True):
            if len(row) > width:
                size = f"the sentence has {len(row)} symbols, but the model reads at most {width}"
                raise DataError(f"{path}, line {line}: {size}")
        found = copy(self)
        found._texts = self._texts | {"test": texts}
        found._examined = self._examined | {"test": pad(ids, width)}
        labels = [self.classes.index(str(each.targets[0])) if each.targets else NONE for each in examples]
        found._labels = self._labels | {"test": np.array(labels, np.int32)}
        found.notes = (
            *ambiguous({path: _labelled(examples)}, "text"),
            *repeated({"train": self._texts["train"], path: texts}),
            *self._unread(path, texts, ids),
        )
        return found

    def inputs(self, part: str, limit: int | None = None) -> list[str]:
        """Returns the sentences."""
        return [self._texts[part][n] for n in sampled(len(self._texts[part]), limit)]

    def _unread(self, name: str, texts: Sequence[str], ids: Sequence[Sequence[int]]) -> tuple[str, ...]:
        """Returns a message if sentences have no known symbol, so that the model cannot tell them apart."""
        strange = [text for text, row in zip(texts, ids, strict=True) if all(n == self.unknown for n in row)]
        if not strange:
            return ()
        unspaced = isinstance(self.tokenizer.units, Words) and all(len(text.split()) == 1 for text in strange)
        advice = "; task.units=characters reads them by character" if unspaced else ""
        have = f"{len(strange):,} of {len(texts):,} sentences {'has' if len(strange) == 1 else 'have'}"
        return (f"{name}: {have} no symbol that the model knows: {shorten(strange[0], 60, placeholder=' …')}{advice}",)

    def _hidden(self, source: np.ndarray, *seeds: int) -> Batch:
        return self.masking.hide(source, generator(*seeds))

    def _classes(self, examples: Sequence[Example]) -> np.ndarray:
        return np.array(self._names.encode([str(example.targets[0]) for example in examples]), np.int32) - RESERVED

    def _words(self, model: Classifier, batch: Batch, keys: PRNGKeyArray | None) -> TokenLosses:
        """Returns the cross-entropy of masked words at their positions [B P]."""
        import jax
        import jax.numpy as jnp

        if not isinstance(model, MaskedWordModel):
            raise ValueError(
                f"task.masked={self.masked} requires a model that predicts masked words, for example model=bert"
            )
        source, keep, places, answers = (jnp.asarray(batch[name]) for name in ("hidden", "keep", "places", "answers"))
        return losses_of_logits(jax.vmap(model.fill)(source, keep, places, keys), answers, answers != PAD)


def _fitted(units: TokenizerSpec, texts: list[str], least: int) -> Tokenizer:
    if not isinstance(units, Words):
        return units.fit(texts)
    counts = Counter(word for text in texts for word in units.cut(text))
    words = tuple(sorted(word for word, count in counts.items() if count >= least))
    if not words:
        raise DataError(f"none of the {len(counts)} training words occurs task.least={least} times; use task.least=1")
    return units.restored(Vocabulary(words), {})


def _labelled(examples: Iterable[Example]) -> list[tuple[str, str, str]]:
    """Returns text, class and text of each example whose class is known."""
    return [(str(each.source), str(each.targets[0]), str(each.source)) for each in examples if each.targets]


def _fingerprint(parts: Parts, unlabelled: Sequence[str]) -> str:
    rows = [(part, example.source, example.targets) for part in ("train", "valid", "test") for example in parts[part]]
    return hashlib.sha256(repr((rows, list(unlabelled))).encode(errors="surrogatepass")).hexdigest()
