"""The interface to inputs and answers of sentence classifiers. It needs none of the training data."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from attnlab.data.batches import pad
from attnlab.data.io.files import DataError
from attnlab.data.text.listed import ListTokenizer
from attnlab.data.text.units import Tokenizer, from_json
from attnlab.data.text.vocabulary import PAD, RESERVED, Vocabulary
from attnlab.tasks.base.classification import ClassInterface
from attnlab.tasks.base.shapes import Classes, Tokens
from attnlab.tasks.base.text_interface import Batch

UNKNOWN, MASK = "[unknown]", "[mask]"  # how `tokens` shows them


class SentenceInterface(ClassInterface):
    """The interface of a classifier of sentences.

    The ids of the unknown symbol and of the mask follow those of the vocabulary.

    Args:
        classes: The names of the classes.
        tokenizer: The tokenizer of sentences.
        length: The largest number of symbols of a sentence.
        read: Prepares an input of a user.
    """

    def __init__(
        self, classes: Sequence[str], tokenizer: Tokenizer, length: int, read: Callable[[str], str] = str.strip
    ):
        super().__init__(classes)
        self.tokenizer, self.read = tokenizer, read
        self.unknown = tokenizer.vocabulary.size
        self.mask = self.unknown + 1
        self.shape = Classes(Tokens(self.unknown + 2, length), len(self.classes))

    @classmethod
    def restored(cls, vocabulary: dict[str, object], where: str, read: Callable[[str], str]) -> SentenceInterface:
        """Returns the interface of a stored vocabulary.

        Args:
            vocabulary: The result of the property `vocabulary`.
            where: The name of the vocabulary's file, with which error messages begin.
            read: Prepares an input of a user.

        Raises:
            DataError: If the vocabulary is not one of a sentence classifier.
        """
        length = vocabulary.get("length")
        if not isinstance(length, int) or length < 1:
            raise DataError(f"{where}: length={length!r} must be a whole number of at least 1")
        classes = Vocabulary.from_json(vocabulary.get("classes"), f"{where}: classes")
        return cls(classes.symbols, from_json(vocabulary.get("text"), f"{where}: text"), length, read)

    @property
    def vocabulary(self) -> dict[str, object]:
        """The vocabulary, as {"text": tokenizer with its symbols, "classes": [names], "length": of a sentence}."""
        length = self.shape.source.length  # pyright: ignore[reportAttributeAccessIssue]
        return super().vocabulary | {"text": self.tokenizer.to_json(), "length": length}

    def encode_prompt(self, text: str) -> Batch:
        """Returns a sentence as {"source", "keep": [1 T]}.

        Raises:
            DataError: If none of its symbols occurs in training, or if it is longer than any training sentence. Later
                positions were never trained.
        """
        ids, length = encoded(self.tokenizer, self.read(text)), self.shape.source.length  # type: ignore[union-attr]
        if all(n == self.unknown for n in ids):
            raise DataError(f"the input {text!r} has no symbol that occurs in training")
        if len(ids) > length:
            raise DataError(f"the input has {len(ids)} symbols, but the model reads at most {length}")
        return sentence_batch(pad([ids], length))

    def tokens(self, batch: Batch) -> dict[str, list[str]]:
        """Returns the symbols of row 0 without padding. Special symbols are shown as [unknown] and [mask]."""
        names = {self.unknown: UNKNOWN, self.mask: MASK}
        symbols = self.tokenizer.vocabulary.symbols
        row = np.asarray(batch["source"])[0].tolist()
        return {"source": [names.get(n) or symbols[n - RESERVED] for n in row if n != PAD], "target": []}


def encoded(tokenizer: Tokenizer, text: str) -> list[int]:
    """Returns the ids of a text.

    The id of the unknown symbol follows the ids of the vocabulary. A text without any known symbol becomes one unknown
    symbol.
    """
    unknown = tokenizer.vocabulary.size
    if not isinstance(tokenizer, ListTokenizer):
        return tokenizer.encode(text, known=True) or [unknown]
    vocabulary, symbols = tokenizer.vocabulary, tokenizer.units.cut(text)
    found = [vocabulary.encode([each])[0] if vocabulary.known([each]) else unknown for each in symbols]
    return found or [unknown]


def sentence_batch(source: np.ndarray) -> Batch:
    """Returns sentences [B T] as a batch {"source", "keep": [B T]}."""
    return {"source": source, "keep": source != PAD}
