"""The interface of tokenizers: a `TokenizerSpec` learns the symbols of a text, a `Tokenizer` encodes and decodes."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import ClassVar

from attnlab.data.io.files import DataError
from attnlab.data.names import composed
from attnlab.data.text.vocabulary import Vocabulary
from attnlab.documented import Documented


@dataclass(frozen=True)
class Tokenizer(ABC):
    """Converts text to ids of a vocabulary, and back.

    Two tokenizers are equal if they encode and decode in the same way.
    """

    units: "TokenizerSpec"
    """The configuration that this tokenizer was fitted with."""
    vocabulary: Vocabulary
    """The symbols and their ids."""

    @abstractmethod
    def encode(self, text: str, known: bool = False, within: bool = False) -> list[int]:
        """Returns the ids of a text, without BEGIN and END.

        Args:
          text: the text.
          known: leave out unknown symbols instead of raising an error.
          within: whether the text is a continuation of another text, and not its beginning.

        Raises:
          DataError: if a symbol is unknown and `known` is False. The message lists these symbols and their positions.
        """

    @abstractmethod
    def unknown_symbols(self, text: str) -> tuple[list[str], int]:
        """Returns the unknown symbols of a text, once for each occurrence, and the number of all its symbols."""

    @abstractmethod
    def decode(self, ids: Iterable, within: bool = False) -> str:
        """Returns the text of ids up to the first END, without PAD and BEGIN.

        Args:
          ids: the ids.
          within: whether the ids are a continuation of another text, and not its beginning.

        Raises:
          ValueError: if an id is outside of the vocabulary.
        """

    @abstractmethod
    def normalize(self, text: str) -> str:
        """Returns the text as `decode` would write it, unknown symbols included. Outputs are compared with this."""

    @property
    def symbols(self) -> tuple[str, ...]:
        """The symbols of the vocabulary."""
        return self.vocabulary.symbols

    def to_json(self) -> dict[str, object]:
        """Returns the tokenizer as a dict for JSON. `attnlab.data.text.units.from_json` reads it."""
        return {"kind": self.units.kind, **asdict(self.units), "symbols": self.vocabulary.to_json()}


@dataclass(frozen=True)
class TokenizerSpec(ABC, metaclass=Documented):
    """Configuration of a tokenizer: what the symbols of a text are.

    `fit` learns from text which symbols there are.
    """

    kind: ClassVar[str]
    """Name of the class in files."""
    spells: ClassVar[bool] = True
    """Whether the symbols contain the whole text, so that joining them gives the text again."""

    @abstractmethod
    def fit(self, sentences: Iterable[str]) -> Tokenizer:
        """Returns the tokenizer for the symbols in `sentences`.

        Args:
          sentences: texts to learn from. For a vocabulary that two languages share, pass the lines of both.

        Raises:
          DataError: if there is no text.
        """

    @abstractmethod
    def restored(self, vocabulary: Vocabulary, content: Mapping[str, object]) -> Tokenizer:
        """Returns the tokenizer that was saved with `Tokenizer.to_json`.

        Args:
          vocabulary: the saved vocabulary.
          content: the whole dict that `to_json` returned.

        Raises:
          ValueError: if the two do not describe a tokenizer of this class.
        """


def normalize(text: str, lower: bool = False) -> str:
    """Returns the text in NFC, in lower case if `lower`, so that texts that look the same are equal."""
    return composed(text.lower() if lower else text)


def non_empty(sentences: Iterable[str]) -> list[str]:
    """Returns the sentences as a list; raises DataError if they contain no text."""
    sentences = list(sentences)
    if not any(sentence.strip() for sentence in sentences):
        raise DataError(f"the {len(sentences)} sentences contain no text to learn symbols from")
    return sentences
