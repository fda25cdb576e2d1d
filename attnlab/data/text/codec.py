"""What every way of cutting text into symbols can do: units learn which symbols there are, a codec reads and writes."""

from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any, ClassVar

from attnlab.data.io.files import DataError
from attnlab.data.names import composed
from attnlab.data.text.vocabulary import Vocabulary


@dataclass(frozen=True)
class Tokenizer(ABC):
    """Text as ids of `vocabulary`, and back. Two are equal where they read and write the same."""

    units: "TokenizerSpec"
    vocabulary: Vocabulary

    @abstractmethod
    def encode(self, text: str, known: bool = False, within: bool = False) -> list[int]:
        """The ids of `text`, without marks; `within`: of a text that begins in the midst of another.

        Raises DataError naming symbols never seen and where they stand; `known` leaves them out instead.
        """

    @abstractmethod
    def unknown_symbols(self, text: str) -> tuple[list[str], int]:
        """The symbols of a text that were never seen, as often as they stand in it, and how many it has in all."""

    @abstractmethod
    def decode(self, ids: Iterable, within: bool = False) -> str:
        """The text of ids up to the end mark, without padding and begin marks; ValueError beyond the size.

        `within`: of ids that begin in the midst of a text.
        """

    @abstractmethod
    def normalize(self, text: str) -> str:
        """The text as `decode` writes it, symbols never seen too: what an answer is compared with."""

    @property
    def symbols(self) -> tuple[str, ...]:
        """Those of the vocabulary."""
        return self.vocabulary.symbols

    def to_json(self) -> dict[str, Any]:
        """The codec as JSON holds it, for `from_json`."""
        return {"kind": self.units.kind} | asdict(self.units) | {"symbols": self.vocabulary.to_json()}


@dataclass(frozen=True)
class TokenizerSpec(ABC):
    """What the symbols of a text are. Plain configuration; `fit` learns which ones there are.

    `kind` is their name in a file. `spells` says whether they are all of the text: joined, they are it again.
    """

    kind: ClassVar[str]
    spells: ClassVar[bool] = True

    @abstractmethod
    def fit(self, sentences: Iterable[str]) -> Tokenizer:
        """The codec of the symbols in `sentences`; give the lines of both languages for one they share.

        Raises DataError where there is no text.
        """

    @abstractmethod
    def restored(self, vocabulary: Vocabulary, content: dict[str, Any]) -> Tokenizer:
        """The codec with this vocabulary, whose `to_json` is `content`; ValueError where it cannot be one."""


def normalize(text: str, lower: bool = False) -> str:
    """The text in NFC, in lower case if asked: what looks the same is the same."""
    return composed(text.lower() if lower else text)


def present(sentences: Iterable[str]) -> list[str]:
    """The sentences as a list; DataError where there is no text in them."""
    sentences = list(sentences)
    if not any(sentence.strip() for sentence in sentences):
        raise DataError(f"there is no text in {len(sentences)} sentences to learn symbols from")
    return sentences
