"""Problems whose sequences are named symbols, and end in a question."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from attnlab.data.io.files import DataError
from attnlab.data.text.vocabulary import RESERVED, Vocabulary
from attnlab.tasks.base.prediction import PredictionData
from attnlab.tasks.base.task import Batch, Row, TaskData


class SymbolQuestions(PredictionData, TaskData):
    """Token n is called `words[n]`; a person asks by the last one, and is told what comes after it."""

    def __init__(self, words: Sequence[str]):
        self.words, self._vocabulary = tuple(words), Vocabulary(tuple(words))

    def answer(self, model: Any, batch: Batch) -> Batch:
        """{"tokens": [B T]}: the token it takes for the next one, at every place."""
        import jax
        import jax.numpy as jnp

        said = jax.vmap(lambda tokens: jnp.argmax(model(tokens, None, key=None), axis=-1))
        return {"tokens": said(jnp.asarray(batch["tokens"]))}

    def rows(self, part: str, answers: list[Batch], limit: int | None = None) -> list[Row]:
        """A row for each question: the sequence up to it, and what comes next."""
        found = []
        for batch, answer in zip(self.eval_batches(part, limit), answers, strict=True):
            said = np.asarray(answer["tokens"])
            for row, place in zip(*np.nonzero(batch["asked"]), strict=True):
                words = [self.words[n] for n in batch["tokens"][row, : place + 1]]
                found.append(
                    Row(" ".join(words), self.words[batch["answers"][row, place]], self.words[said[row, place]])
                )
        return found

    def counted(self, part: str, limit: int | None = None) -> int | None:
        """Questions."""
        return sum(int(batch["asked"].sum()) for batch in self.eval_batches(part, limit))

    def encode_prompt(self, text: str) -> Batch:
        """One sequence, "k1 v5 k2 v0 k1", whose last token asks.

        Raises DataError for symbols there are not, and where it is longer than any that a model of it has read.
        """
        words = text.split()
        if not words:
            raise DataError(f"the input {text!r} is empty")
        if len(words) > self.shape.length:
            raise DataError(f"the input has {len(words)} symbols; the longest read here have {self.shape.length}")
        tokens = np.array([self._vocabulary.encode(words)], np.int32) - RESERVED
        asked = np.zeros(tokens.shape, bool)
        asked[0, -1] = True
        return {"tokens": tokens, "answers": np.zeros_like(tokens), "asked": asked}

    def format_answer(self, answer: Batch) -> str:
        """What comes after the last token."""
        return self.words[int(np.asarray(answer["tokens"])[0, -1])]

    def tokens(self, batch: Batch) -> dict[str, list[str]]:
        """The symbols of row 0, which reads itself."""
        words = [self.words[n] for n in np.asarray(batch["tokens"])[0]]
        return {"source": words, "target": words}

    @property
    def vocabulary(self) -> dict[str, Any]:
        """{"tokens": [symbols]}."""
        return {"tokens": list(self.words)}
