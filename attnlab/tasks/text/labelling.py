"""Sentences to be sorted: what needs none of the data it was trained on."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from attnlab.data.batches import pad
from attnlab.data.io.files import DataError
from attnlab.data.text.listed import ListCodec
from attnlab.data.text.units import Tokenizer, from_json
from attnlab.data.text.vocabulary import PAD, RESERVED, Vocabulary
from attnlab.tasks.base.classification import ClassInterface
from attnlab.tasks.base.task import Batch, Classes, Tokens

UNKNOWN, MASK = "[unknown]", "[mask]"  # as `tokens` writes them


class SentenceInterface(ClassInterface):
    """Sentences of up to `length` symbols, read by `codec`, and the classes that they are sorted into.

    Behind the vocabulary's ids stand that of the unknown and that of the mask. `read` prepares what a person types.
    """

    def __init__(self, classes: Sequence[str], codec: Tokenizer, length: int, read: Callable[[str], str] = str.strip):
        super().__init__(classes)
        self.codec, self.read = codec, read
        self.unknown = codec.vocabulary.size
        self.mask = self.unknown + 1
        self.shape = Classes(Tokens(self.unknown + 2, length), len(self.classes))

    @classmethod
    def restored(cls, vocabulary: dict[str, Any], where: str, read: Callable[[str], str]) -> SentenceInterface:
        """That of a `vocabulary`; DataError beginning with `where` for what is none."""
        length = vocabulary.get("length")
        if not isinstance(length, int) or length < 1:
            raise DataError(f"{where}: length={length!r} must be a whole number of at least 1")
        classes = Vocabulary.from_json(vocabulary.get("classes"), f"{where}: classes")
        return cls(classes.symbols, from_json(vocabulary.get("text"), f"{where}: text"), length, read)

    @property
    def vocabulary(self) -> dict[str, Any]:
        """{"text": how it is read, with its symbols, "classes": [names], "length": of a sentence}."""
        length = self.shape.source.length  # pyright: ignore[reportAttributeAccessIssue]
        return super().vocabulary | {"text": self.codec.to_json(), "length": length}

    def encode_prompt(self, text: str) -> Batch:
        """{"source", "keep": [1 T]}: a sentence.

        Raises DataError where it has no symbol that training had, and where it is longer than any that there was: what
        was learned of later positions is nothing.
        """
        ids, length = encoded(self.codec, self.read(text)), self.shape.source.length  # type: ignore[union-attr]
        if all(n == self.unknown for n in ids):
            raise DataError(f"the input {text!r} is empty, or nothing in it was seen in training")
        if len(ids) > length:
            raise DataError(f"the input has {len(ids)} symbols: those of training have {length} at most")
        return asked(pad([ids], length))

    def tokens(self, batch: Batch) -> dict[str, list[str]]:
        """The symbols of row 0 without padding, [unknown] and [mask] among them."""
        names = {self.unknown: UNKNOWN, self.mask: MASK}
        symbols = self.codec.vocabulary.symbols
        row = np.asarray(batch["source"])[0].tolist()
        return {"source": [names.get(n) or symbols[n - RESERVED] for n in row if n != PAD], "target": []}


def encoded(codec: Tokenizer, text: str) -> list[int]:
    """The ids of a text, the unknown's behind the vocabulary's; of one with nothing known in it, the unknown alone."""
    unknown = codec.vocabulary.size
    if not isinstance(codec, ListCodec):
        return codec.encode(text, known=True) or [unknown]
    vocabulary, symbols = codec.vocabulary, codec.units.cut(text)
    found = [vocabulary.encode([each])[0] if vocabulary.known([each]) else unknown for each in symbols]
    return found or [unknown]


def asked(source: np.ndarray) -> Batch:
    """{"source", "keep": [B T]} of sentences [B T]."""
    return {"source": source, "keep": source != PAD}
