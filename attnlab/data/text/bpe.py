"""Symbols that are learned: characters, and the pairs of symbols that most often stand together."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from attnlab.data.text.codec import Tokenizer, TokenizerSpec, normalize, present
from attnlab.data.text.vocabulary import RESERVED, Vocabulary


@dataclass(frozen=True)
class Bpe(TokenizerSpec):
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
    kind = "bpe"

    def __post_init__(self):
        if isinstance(self.size, bool) or not isinstance(self.size, int) or not RESERVED < self.size < 2**31:
            raise ValueError(f"size={self.size!r} must be a whole number in {RESERVED + 1} … {2**31 - 1}")

    def fit(self, sentences: Iterable[str]) -> Tokenizer:
        """The codec of the merges learned; ValueError where the characters alone are more than `size`."""
        from tokenizers.trainers import BpeTrainer

        sentences = [" " + normalize(sentence, self.lower) for sentence in present(sentences)]
        tokenizer = _tokenizer(self, {}, ())
        trainer = BpeTrainer(vocab_size=self.size - RESERVED, min_frequency=2, show_progress=False)
        tokenizer.train_from_iterator(sentences, trainer)
        learned = json.loads(tokenizer.to_str())["model"]
        symbols = tuple(sorted(learned["vocab"], key=learned["vocab"].__getitem__))
        if RESERVED + len(symbols) > self.size:
            raise ValueError(f"size={self.size} must be at least {RESERVED + len(symbols)}: so many characters occur")
        return BpeCodec(self, Vocabulary(symbols), tuple(map(tuple, learned["merges"])))

    def restored(self, vocabulary: Vocabulary, content: dict[str, Any]) -> Tokenizer:
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
class BpeCodec(Tokenizer):
    """The codec of merged pairs: `merges` in the order in which they are tried.

    A space is put before the text, so that its first word is written as any other, and taken away again; not of what
    stands within another text.
    """

    units: Bpe
    merges: tuple[tuple[str, str], ...] = field(repr=False)

    def encode(self, text: str, known: bool = False, within: bool = False) -> list[int]:
        """The ids of `text`; a symbol never seen is always a character, for the rest is made of them."""
        text = normalize(text, self.units.lower)
        if not self._seen.issuperset(text):
            seen = Vocabulary(tuple(sorted(self._seen)))
            if not known:
                seen.encode(text)
            text = "".join(seen.known(text))
        ids = self._tokenizer.encode(text if within else " " + text, add_special_tokens=False).ids if text else []
        return [RESERVED + n for n in ids]

    def unknown_symbols(self, text: str) -> tuple[list[str], int]:
        """Of the characters of `text`: all other symbols are made of them."""
        text = normalize(text, self.units.lower)
        return [character for character in text if character not in self._seen], len(text)

    def decode(self, ids: Iterable, within: bool = False) -> str:
        """The symbols of the ids side by side."""
        text = "".join(self.vocabulary.decode(ids))
        return text if within else text.removeprefix(" ")

    def normalize(self, text: str) -> str:
        """The text in NFC, in lower case if the units are."""
        return normalize(text, self.units.lower)

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


def _tokenizer(units: Bpe, ids: dict[str, int], merges: Sequence[tuple[str, str]]):
    # Imported when it is needed: who reads dates needs no merges.
    from tokenizers import Regex, Tokenizer
    from tokenizers.models import BPE
    from tokenizers.pre_tokenizers import Split

    marks = r" ?[\p{L}\p{M}\p{N}]+| ?[^\s\p{L}\p{M}\p{N}]+|\s"
    tokenizer = Tokenizer(BPE(vocab=ids, merges=list(merges)))
    tokenizer.pre_tokenizer = Split(Regex(marks if units.punctuation else r" ?\S+|\s"), "isolated")
    return tokenizer
