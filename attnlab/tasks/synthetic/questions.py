"""Tasks whose sequences consist of named symbols and end in a question."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from attnlab.data.io.files import DataError
from attnlab.data.text.vocabulary import RESERVED, Vocabulary
from attnlab.tasks.base.models import TokenScores
from attnlab.tasks.base.task import Row, TaskData
from attnlab.tasks.base.text_interface import Batch
from attnlab.tasks.base.token_prediction import MarkedPrediction


class SymbolQuestions(MarkedPrediction, TaskData):
    """Data of token sequences whose tokens have names. The last token of an input asks which token follows it.

    Args:
        words: The name of each token: token n is `words[n]`.
    """

    def __init__(self, words: Sequence[str]):
        self.words, self._vocabulary = tuple(words), Vocabulary(tuple(words))

    def answer(self, model: TokenScores, batch: Batch) -> Batch:
        """Returns {"tokens": [B T]}: at every position, the token that the model predicts to follow."""
        import jax
        import jax.numpy as jnp

        predict = jax.vmap(lambda tokens: jnp.argmax(model(tokens, None, key=None), axis=-1))
        return {"tokens": predict(jnp.asarray(batch["tokens"]))}

    def rows(self, part: str, answers: list[Batch], limit: int | None = None) -> list[Row]:
        """Returns a row for each question: the sequence up to it, the correct token and the predicted token."""
        found = []
        for batch, answer in zip(self.eval_batches(part, limit), answers, strict=True):
            predicted = np.asarray(answer["tokens"])
            for row, place in zip(*np.nonzero(batch["scored"]), strict=True):
                words = [self.words[n] for n in batch["tokens"][row, : place + 1]]
                found.append(
                    Row(" ".join(words), self.words[batch["answers"][row, place]], self.words[predicted[row, place]])
                )
        return found

    def count_scored(self, part: str, limit: int | None = None) -> int | None:
        """Returns the number of questions."""
        return sum(int(batch["scored"].sum()) for batch in self.eval_batches(part, limit))

    def encode_prompt(self, text: str) -> Batch:
        """Parses one sequence, for example "k1 v5 k2 v0 k1". Its last token is the question.

        Raises:
            DataError: If a symbol does not exist, or if the sequence is longer than any that the model has read.
        """
        words = text.split()
        if not words:
            raise DataError(f"the input {text!r} is empty")
        if len(words) > self.shape.length:
            raise DataError(f"the input has {len(words)} symbols, but the model reads at most {self.shape.length}")
        tokens = np.array([self._vocabulary.encode(words)], np.int32) - RESERVED
        scored = np.zeros(tokens.shape, bool)
        scored[0, -1] = True
        return {"tokens": tokens, "answers": np.zeros_like(tokens), "scored": scored}

    def format_answer(self, answer: Batch) -> str:
        """Returns the predicted token after the last one."""
        return self.words[int(np.asarray(answer["tokens"])[0, -1])]

    def tokens(self, batch: Batch) -> dict[str, list[str]]:
        """Returns the symbols of row 0, for both axes of an attention map."""
        words = [self.words[n] for n in np.asarray(batch["tokens"])[0]]
        return {"source": words, "target": words}

    @property
    def vocabulary(self) -> dict[str, object]:
        """The symbols, as {"tokens": [symbols]}."""
        return {"tokens": list(self.words)}
