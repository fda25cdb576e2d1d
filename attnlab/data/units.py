"""How text is cut into symbols and written again: characters, bytes, words, merged pairs of characters."""

import json
import unicodedata
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field, fields
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

from attnlab.data.example import Symbols
from attnlab.data.files import DataError
from attnlab.data.vocabulary import RESERVED, Vocabulary


@dataclass(frozen=True)
class Codec(ABC):
    """Text as ids of `vocabulary`, and back. Two are equal where they read and write the same."""

    units: "Units"
    vocabulary: Vocabulary

    @abstractmethod
    def encode(self, text: str, known: bool = False, within: bool = False) -> list[int]:
        """The ids of `text`, without marks; `within`: of a text that begins in the midst of another.

        Raises DataError naming symbols never seen and where they stand; `known` leaves them out instead.
        """

    @abstractmethod
    def unseen(self, text: str) -> tuple[list[str], int]:
        """The symbols of a text that were never seen, as often as they stand in it, and how many it has in all."""

    @abstractmethod
    def decode(self, ids: Iterable, within: bool = False) -> str:
        """The text of ids up to the end mark, without padding and begin marks; ValueError beyond the size.

        `within`: of ids that begin in the midst of a text.
        """

    @abstractmethod
    def plain(self, text: str) -> str:
        """The text as `decode` writes it, symbols never seen too: what an answer is compared with."""

    @property
    def symbols(self) -> tuple[str, ...]:
        """Those of the vocabulary."""
        return self.vocabulary.symbols

    def to_json(self) -> dict[str, Any]:
        """The codec as JSON holds it, for `from_json`."""
        name = next(name for name, units in UNITS.items() if type(units) is type(self.units))
        return {"kind": name} | asdict(self.units) | {"symbols": self.vocabulary.to_json()}


@dataclass(frozen=True)
class Units(ABC):
    """What the symbols of a text are. Plain configuration; `fit` learns which ones there are.

    `spells` says whether they are all of the text: joined, they are it again.
    """

    spells: ClassVar[bool] = True

    @abstractmethod
    def fit(self, sentences: Iterable[str]) -> Codec:
        """The codec of the symbols in `sentences`; give the lines of both languages for one they share.

        Raises DataError where there is no text.
        """

    @abstractmethod
    def restored(self, vocabulary: Vocabulary, content: dict[str, Any]) -> Codec:
        """The codec with this vocabulary, whose `to_json` is `content`; ValueError where it cannot be one."""


@dataclass(frozen=True)
class Listed(Units):
    """Units of which each stands by itself: the vocabulary is those that occur."""

    @abstractmethod
    def cut(self, text: str) -> Symbols:
        """The symbols of a text."""

    @abstractmethod
    def join(self, symbols: Sequence[str]) -> str:
        """The text of symbols."""

    def fit(self, sentences: Iterable[str]) -> Codec:
        """The codec of all symbols that occur, in the order of their code points."""
        return ListCodec(self, Vocabulary.of(map(self.cut, _present(sentences))))

    def restored(self, vocabulary: Vocabulary, content: dict[str, Any]) -> Codec:
        """The codec with this vocabulary."""
        return ListCodec(self, vocabulary)


@dataclass(frozen=True)
class Characters(Listed):
    """A symbol is a character: a code point of the text in NFC, in lower case if `lower`."""

    lower: bool = False

    def cut(self, text: str) -> Symbols:
        """The characters of a text."""
        return plain(text, self.lower)

    def join(self, symbols: Sequence[str]) -> str:
        """The characters side by side."""
        return "".join(symbols)


@dataclass(frozen=True)
class Words(Listed):
    """A symbol is what stands between white space, in NFC, in lower case if `lower`; written with one space."""

    lower: bool = False
    spells = False

    def cut(self, text: str) -> Symbols:
        """The words of a text."""
        return plain(text, self.lower).split()

    def join(self, symbols: Sequence[str]) -> str:
        """The words with a space between them."""
        return " ".join(symbols)


@dataclass(frozen=True)
class Bytes(Listed):
    """A symbol is a byte of UTF-8: 256 there are, whatever the text, and any text comes back as it was.

    Bytes that are no UTF-8, as a model may answer, are written "�".
    """

    def cut(self, text: str) -> Symbols:
        """The bytes of a text: "a" … as they are, those beyond ASCII and control characters "0xc3"."""
        try:
            return [BYTES[byte] for byte in text.encode("utf-8")]
        except UnicodeEncodeError as error:
            n = error.start
            raise DataError(f"U+{ord(text[n]):04X} at position {n + 1} is half a character and no text") from None

    def join(self, symbols: Sequence[str]) -> str:
        """The text that the bytes spell."""
        return bytes(_BYTE[symbol] for symbol in symbols).decode("utf-8", errors="replace")

    def fit(self, sentences: Iterable[str] = ()) -> Codec:
        """The codec of all bytes: nothing is learned."""
        return ListCodec(self, Vocabulary(BYTES))

    def restored(self, vocabulary: Vocabulary, content: dict[str, Any]) -> Codec:
        """The codec; ValueError where the vocabulary is not the 256 bytes."""
        if vocabulary.symbols != BYTES:
            raise ValueError("the symbols are not the 256 bytes")
        return self.fit()


@dataclass(frozen=True)
class Bpe(Units):
    """A symbol is a character or a merged pair of symbols, the most frequent pairs first (Sennrich et al. 2016).

    `size` bounds the ids in all: the reserved ones, every character seen, then merges, fewer where no further
    pair occurs twice. Merges stay inside what stands between white space, each word with the space before it,
    and inside a run of letters and digits or of other marks if `punctuation`: for text that is not tokenised.
    The text is in NFC, in lower case if `lower`; white space comes back as it was. The same sentences give the
    same merges.
    """

    size: int = 10_000
    lower: bool = False
    punctuation: bool = False

    def __post_init__(self):
        if isinstance(self.size, bool) or not isinstance(self.size, int) or not RESERVED < self.size < 2**31:
            raise ValueError(f"size={self.size!r} must be a whole number in {RESERVED + 1} … {2**31 - 1}")

    def fit(self, sentences: Iterable[str]) -> Codec:
        """The codec of the merges learned; ValueError where the characters alone are more than `size`."""
        from tokenizers.trainers import BpeTrainer

        sentences = [" " + plain(sentence, self.lower) for sentence in _present(sentences)]
        tokenizer = _tokenizer(self, {}, ())
        trainer = BpeTrainer(vocab_size=self.size - RESERVED, min_frequency=2, show_progress=False)
        tokenizer.train_from_iterator(sentences, trainer)
        learned = json.loads(tokenizer.to_str())["model"]
        symbols = tuple(sorted(learned["vocab"], key=learned["vocab"].__getitem__))
        if RESERVED + len(symbols) > self.size:
            raise ValueError(f"size={self.size} must be at least {RESERVED + len(symbols)}: so many characters occur")
        return BpeCodec(self, Vocabulary(symbols), tuple(map(tuple, learned["merges"])))

    def restored(self, vocabulary: Vocabulary, content: dict[str, Any]) -> Codec:
        """The codec with this vocabulary and the merges; ValueError where a merge is not of its symbols."""
        merges, symbols = content.get("merges"), set(vocabulary.symbols)
        if not isinstance(merges, list) or " " not in symbols:
            raise ValueError("there must be a list of merges, and a space among the symbols")
        for n, merge in enumerate(merges, start=1):
            pair = isinstance(merge, list) and len(merge) == 2 and all(isinstance(part, str) for part in merge)
            if not pair or not {*merge, "".join(merge)} <= symbols:
                raise ValueError(f"merge {n}, {merge!r}, is not a pair of symbols that makes one")
        return BpeCodec(self, vocabulary, tuple(map(tuple, merges)))


@dataclass(frozen=True)
class ListCodec(Codec):
    """The codec of symbols that stand each by itself."""

    units: Listed

    def encode(self, text: str, known: bool = False, within: bool = False) -> list[int]:
        """The ids of the symbols that `text` is cut into."""
        symbols = self.units.cut(text)
        return self.vocabulary.encode(self.vocabulary.known(symbols) if known else symbols)

    def unseen(self, text: str) -> tuple[list[str], int]:
        """Of the symbols that `text` is cut into."""
        symbols = self.units.cut(text)
        return self.vocabulary.unknown(symbols), len(symbols)

    def decode(self, ids: Iterable, within: bool = False) -> str:
        """The symbols of the ids, joined."""
        return self.units.join(self.vocabulary.decode(ids))

    def plain(self, text: str) -> str:
        """The symbols that `text` is cut into, joined."""
        return self.units.join(self.units.cut(text))


@dataclass(frozen=True)
class BpeCodec(Codec):
    """The codec of merged pairs: `merges` in the order in which they are tried.

    A space is put before the text, so that its first word is written as any other, and taken away again; not of what
    stands within another text.
    """

    units: Bpe
    merges: tuple[tuple[str, str], ...] = field(repr=False)

    def encode(self, text: str, known: bool = False, within: bool = False) -> list[int]:
        """The ids of `text`; a symbol never seen is always a character, for the rest is made of them."""
        text = plain(text, self.units.lower)
        if not self._seen.issuperset(text):
            seen = Vocabulary(tuple(sorted(self._seen)))
            if not known:
                seen.encode(text)
            text = "".join(seen.known(text))
        ids = self._tokenizer.encode(text if within else " " + text, add_special_tokens=False).ids if text else []
        return [RESERVED + n for n in ids]

    def unseen(self, text: str) -> tuple[list[str], int]:
        """Of the characters of `text`: all other symbols are made of them."""
        text = plain(text, self.units.lower)
        return [character for character in text if character not in self._seen], len(text)

    def decode(self, ids: Iterable, within: bool = False) -> str:
        """The symbols of the ids side by side."""
        text = "".join(self.vocabulary.decode(ids))
        return text if within else text.removeprefix(" ")

    def plain(self, text: str) -> str:
        """The text in NFC, in lower case if the units are."""
        return plain(text, self.units.lower)

    def to_json(self) -> dict[str, Any]:
        """The symbols and the merges."""
        return super().to_json() | {"merges": [list(merge) for merge in self.merges]}

    @cached_property
    def _seen(self) -> frozenset[str]:
        return frozenset(symbol for symbol in self.vocabulary.symbols if len(symbol) == 1)

    @cached_property
    def _tokenizer(self):
        ids = {symbol: n for n, symbol in enumerate(self.vocabulary.symbols)}
        return _tokenizer(self.units, ids, self.merges)


BYTES = tuple(chr(n) if 32 <= n < 127 else f"0x{n:02x}" for n in range(256))
_BYTE = {symbol: n for n, symbol in enumerate(BYTES)}
UNITS: dict[str, Units] = {"characters": Characters(), "bytes": Bytes(), "words": Words(), "bpe": Bpe()}


def from_json(content: object, path: str | Path = "units") -> Codec:
    """The codec that `to_json` wrote; DataError naming `path` where it is none."""
    if not isinstance(content, dict) or content.get("kind") not in list(UNITS):
        raise DataError(f"{path} holds no units: their kind must be one of {', '.join(UNITS)}")
    kind = type(UNITS[content["kind"]])
    default = asdict(UNITS[content["kind"]])
    for name, value in default.items():
        if type(content.get(name)) is not type(value):
            raise DataError(f"{path}: {name}={content.get(name)!r} must be like {value!r}")
    vocabulary = Vocabulary.from_json(content.get("symbols"), path)
    try:
        return kind(**{each.name: content[each.name] for each in fields(kind)}).restored(vocabulary, content)
    except ValueError as error:
        raise DataError(f"{path}: {error}") from error


def plain(text: str, lower: bool = False) -> str:
    """The text in NFC, in lower case if asked: what looks the same is the same."""
    return unicodedata.normalize("NFC", text.lower() if lower else text)


def _present(sentences: Iterable[str]) -> list[str]:
    sentences = list(sentences)
    if not any(sentence.strip() for sentence in sentences):
        raise DataError(f"there is no text in {len(sentences)} sentences to learn symbols from")
    return sentences


def _tokenizer(units: Bpe, ids: dict[str, int], merges: Sequence[tuple[str, str]]):
    # Imported when it is needed: who reads dates needs no merges.
    from tokenizers import Regex, Tokenizer
    from tokenizers.models import BPE
    from tokenizers.pre_tokenizers import Split

    marks = r" ?[\p{L}\p{M}\p{N}]+| ?[^\s\p{L}\p{M}\p{N}]+|\s"
    tokenizer = Tokenizer(BPE(vocab=ids, merges=list(merges)))
    tokenizer.pre_tokenizer = Split(Regex(marks if units.punctuation else r" ?\S+|\s"), "isolated")
    return tokenizer
