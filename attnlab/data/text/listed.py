"""Symbols of which each stands by itself: characters, words and bytes."""

from abc import abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from attnlab.data.io.files import DataError
from attnlab.data.text.codec import Tokenizer, TokenizerSpec, normalize, present
from attnlab.data.text.example import Symbols
from attnlab.data.text.vocabulary import Vocabulary

BYTES = tuple(chr(n) if 32 <= n < 127 else f"0x{n:02x}" for n in range(256))
_BYTE = {symbol: n for n, symbol in enumerate(BYTES)}


@dataclass(frozen=True)
class Listed(TokenizerSpec):
    """Units of which each stands by itself: the vocabulary is those that occur."""

    @abstractmethod
    def cut(self, text: str) -> Symbols:
        """The symbols of a text."""

    @abstractmethod
    def join(self, symbols: Sequence[str]) -> str:
        """The text of symbols."""

    def fit(self, sentences: Iterable[str]) -> Tokenizer:
        """The codec of all symbols that occur, in the order of their code points."""
        return ListCodec(self, Vocabulary.of(map(self.cut, present(sentences))))

    def restored(self, vocabulary: Vocabulary, content: dict[str, Any]) -> Tokenizer:
        """The codec with this vocabulary."""
        return ListCodec(self, vocabulary)


@dataclass(frozen=True)
class Characters(Listed):
    """A symbol is a character: a code point of the text in NFC, in lower case if `lower`."""

    lower: bool = False
    kind = "characters"

    def cut(self, text: str) -> Symbols:
        """The characters of a text."""
        return normalize(text, self.lower)

    def join(self, symbols: Sequence[str]) -> str:
        """The characters side by side."""
        return "".join(symbols)


@dataclass(frozen=True)
class Words(Listed):
    """A symbol is what stands between white space, in NFC, in lower case if `lower`; written with one space."""

    lower: bool = False
    kind = "words"
    spells = False

    def cut(self, text: str) -> Symbols:
        """The words of a text."""
        return normalize(text, self.lower).split()

    def join(self, symbols: Sequence[str]) -> str:
        """The words with a space between them."""
        return " ".join(symbols)


@dataclass(frozen=True)
class Bytes(Listed):
    """A symbol is a byte of UTF-8: 256 there are, whatever the text, and any text comes back as it was.

    Bytes that are no UTF-8, as a model may answer, are written "�".
    """

    kind = "bytes"

    def cut(self, text: str) -> Symbols:
        """The bytes of a text: "a" … as they are, those beyond ASCII and control characters "0xc3"."""
        return [BYTES[byte] for byte in utf8(text)]

    def join(self, symbols: Sequence[str]) -> str:
        """The text that the bytes spell."""
        return bytes(_BYTE[symbol] for symbol in symbols).decode("utf-8", errors="replace")

    def fit(self, sentences: Iterable[str] = ()) -> Tokenizer:
        """The codec of all bytes: nothing is learned."""
        return ListCodec(self, Vocabulary(BYTES))

    def restored(self, vocabulary: Vocabulary, content: dict[str, Any]) -> Tokenizer:
        """The codec; ValueError where the vocabulary is not the 256 bytes."""
        if vocabulary.symbols != BYTES:
            raise ValueError("the symbols are not the 256 bytes")
        return self.fit()


@dataclass(frozen=True)
class ListCodec(Tokenizer):
    """The codec of symbols that stand each by itself."""

    units: Listed

    def encode(self, text: str, known: bool = False, within: bool = False) -> list[int]:
        """The ids of the symbols that `text` is cut into."""
        symbols = self.units.cut(text)
        return self.vocabulary.encode(self.vocabulary.known(symbols) if known else symbols)

    def unknown_symbols(self, text: str) -> tuple[list[str], int]:
        """Of the symbols that `text` is cut into."""
        symbols = self.units.cut(text)
        return self.vocabulary.unknown(symbols), len(symbols)

    def decode(self, ids: Iterable, within: bool = False) -> str:
        """The symbols of the ids, joined."""
        return self.units.join(self.vocabulary.decode(ids))

    def normalize(self, text: str) -> str:
        """The symbols that `text` is cut into, joined."""
        return self.units.join(self.units.cut(text))


def utf8(text: str) -> bytes:
    """The bytes of a text. Raises DataError for half a character, as the surrogates of UTF-16 are."""
    try:
        return text.encode("utf-8")
    except UnicodeEncodeError as error:
        n = error.start
        raise DataError(f"U+{ord(text[n]):04X} at position {n + 1} is half a character and no text") from None
