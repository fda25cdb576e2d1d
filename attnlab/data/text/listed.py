"""Tokenizers whose vocabulary is the list of symbols that occur: characters, words and bytes."""

from abc import abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from attnlab.data.io.files import DataError
from attnlab.data.text.example import Symbols
from attnlab.data.text.tokenizer import Tokenizer, TokenizerSpec, non_empty, normalize
from attnlab.data.text.vocabulary import Vocabulary

BYTES = tuple(chr(n) if 32 <= n < 127 else f"0x{n:02x}" for n in range(256))
_BYTE = {symbol: n for n, symbol in enumerate(BYTES)}


@dataclass(frozen=True)
class Listed(TokenizerSpec):
    """A tokenizer that splits a text by a fixed rule. Its vocabulary is the set of symbols that occur."""

    @abstractmethod
    def cut(self, text: str) -> Symbols:
        """Splits a text into symbols."""

    @abstractmethod
    def join(self, symbols: Sequence[str]) -> str:
        """Joins symbols to a text."""

    def fit(self, sentences: Iterable[str]) -> Tokenizer:
        """Returns the tokenizer of all symbols that occur, in the order of their code points."""
        return ListTokenizer(self, Vocabulary.of(map(self.cut, non_empty(sentences))))

    def restored(self, vocabulary: Vocabulary, content: Mapping[str, object]) -> Tokenizer:
        """Returns the tokenizer with this vocabulary."""
        return ListTokenizer(self, vocabulary)


@dataclass(frozen=True)
class Characters(Listed):
    """Splits text into characters: its code points after NFC normalisation."""

    lower: bool = False
    """Convert the text to lower case first."""
    kind = "characters"

    def cut(self, text: str) -> Symbols:
        """Splits a text into characters."""
        return normalize(text, self.lower)

    def join(self, symbols: Sequence[str]) -> str:
        """Concatenates the characters."""
        return "".join(symbols)


@dataclass(frozen=True)
class Words(Listed):
    """Splits text, in NFC, at white space. `join` puts one space between words."""

    lower: bool = False
    """Convert the text to lower case first."""
    kind = "words"
    spells = False

    def cut(self, text: str) -> Symbols:
        """Splits a text into words."""
        return normalize(text, self.lower).split()

    def join(self, symbols: Sequence[str]) -> str:
        """Joins the words with one space between them."""
        return " ".join(symbols)


@dataclass(frozen=True)
class Bytes(Listed):
    """Splits text into the bytes of its UTF-8 encoding.

    There are always 256 symbols, and any text is restored exactly. Bytes that are not valid UTF-8, which a model may
    predict, are decoded as "�".
    """

    kind = "bytes"

    def cut(self, text: str) -> Symbols:
        """Returns the bytes of a text as symbols.

        Printable ASCII stands for itself, for example "a". Other bytes are written in hexadecimal, for example "0xc3".
        """
        return [BYTES[byte] for byte in utf8(text)]

    def join(self, symbols: Sequence[str]) -> str:
        """Decodes the bytes as UTF-8."""
        return bytes(_BYTE[symbol] for symbol in symbols).decode("utf-8", errors="replace")

    def fit(self, sentences: Iterable[str] = ()) -> Tokenizer:
        """Returns the tokenizer of all 256 bytes. Nothing is learned from `sentences`."""
        return ListTokenizer(self, Vocabulary(BYTES))

    def restored(self, vocabulary: Vocabulary, content: Mapping[str, object]) -> Tokenizer:
        """Returns the tokenizer; raises ValueError if the vocabulary is not the 256 bytes."""
        if vocabulary.symbols != BYTES:
            raise ValueError("the symbols are not the 256 bytes")
        return self.fit()


@dataclass(frozen=True)
class ListTokenizer(Tokenizer):
    """The tokenizer of any `Listed` configuration."""

    units: Listed
    """The rule that splits and joins text."""

    def encode(self, text: str, known: bool = False, within: bool = False) -> list[int]:
        """Returns the ids of the symbols of `text`."""
        symbols = self.units.cut(text)
        return self.vocabulary.encode(self.vocabulary.known(symbols) if known else symbols)

    def unknown_symbols(self, text: str) -> tuple[list[str], int]:
        """Returns the unknown symbols of `text`, and the number of all its symbols."""
        symbols = self.units.cut(text)
        return self.vocabulary.unknown(symbols), len(symbols)

    def decode(self, ids: Iterable, within: bool = False) -> str:
        """Returns the symbols of the ids, joined."""
        return self.units.join(self.vocabulary.decode(ids))

    def normalize(self, text: str) -> str:
        """Splits `text` into symbols and joins them again."""
        return self.units.join(self.units.cut(text))


def utf8(text: str) -> bytes:
    """Returns the UTF-8 bytes of a text.

    Raises:
      DataError: if the text contains a surrogate, which is half a character of UTF-16.
    """
    try:
        return text.encode("utf-8")
    except UnicodeEncodeError as error:
        n = error.start
        raise DataError(f"U+{ord(text[n]):04X} at position {n + 1} is an unpaired surrogate, not a character") from None
