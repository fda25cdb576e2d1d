"""Byte-pair encoding (BPE): characters, and learned merges of frequent pairs of symbols."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from attnlab.data.text.tokenizer import Tokenizer, TokenizerSpec, non_empty, normalize
from attnlab.data.text.vocabulary import RESERVED, Vocabulary


@dataclass(frozen=True)
class Bpe(TokenizerSpec):
    """Splits text into characters and merged pairs of symbols, the most frequent merged first (Sennrich et al. 2016).

    Merges stay inside a word, and a word includes the space before it. White space is restored exactly. The text is
    converted to NFC. The same sentences give the same merges.

    Raises:
      ValueError: if `size` is not an integer in 4 … 2³¹ − 1.
    """

    size: int = 10_000
    """The largest number of ids: the reserved ones, every character that occurs, then merges. There are fewer ids if no
    further pair occurs twice.
    """
    lower: bool = False
    """Convert the text to lower case first."""
    punctuation: bool = False
    """Separate runs of letters and digits from runs of other marks, and merge inside each run only. Use this for text
    that is not tokenized.
    """
    kind = "bpe"

    def __post_init__(self):
        if isinstance(self.size, bool) or not isinstance(self.size, int) or not RESERVED < self.size < 2**31:
            raise ValueError(f"size={self.size!r} must be an integer in {RESERVED + 1} … {2**31 - 1}")

    def fit(self, sentences: Iterable[str]) -> Tokenizer:
        """Learns the merges and returns the tokenizer.

        Raises:
          DataError: if there is no text.
          ValueError: if `size` is too small for the characters that occur.
        """
        from tokenizers.trainers import BpeTrainer

        sentences = [" " + normalize(sentence, self.lower) for sentence in non_empty(sentences)]
        tokenizer = _tokenizer(self, {}, ())
        trainer = BpeTrainer(vocab_size=self.size - RESERVED, min_frequency=2, show_progress=False)
        tokenizer.train_from_iterator(sentences, trainer)
        learned = json.loads(tokenizer.to_str())["model"]
        symbols = tuple(sorted(learned["vocab"], key=learned["vocab"].__getitem__))
        if RESERVED + len(symbols) > self.size:
            least = f"{RESERVED + len(symbols)}, for {len(symbols)} characters and {RESERVED} reserved ids"
            raise ValueError(f"size={self.size} must be at least {least}")
        return BpeTokenizer(self, Vocabulary(symbols), tuple(map(tuple, learned["merges"])))

    def restored(self, vocabulary: Vocabulary, content: Mapping[str, object]) -> Tokenizer:
        """Returns the tokenizer with this vocabulary and the merges in `content`.

        Raises:
          ValueError: if a merge is not a pair of symbols of the vocabulary that makes another one.
        """
        merges, symbols = content.get("merges"), set(vocabulary.symbols)
        if not isinstance(merges, list) or " " not in symbols:
            raise ValueError("expected a list of merges, and a space among the symbols")
        for n, merge in enumerate(merges, start=1):
            pair = isinstance(merge, list) and len(merge) == 2 and all(isinstance(part, str) for part in merge)
            if not pair or not {*merge, "".join(merge)} <= symbols:
                raise ValueError(f"merge {n}, {merge!r}, is not a pair of symbols that joins to a symbol")
        return BpeTokenizer(self, vocabulary, tuple(map(tuple, merges)))


@dataclass(frozen=True)
class BpeTokenizer(Tokenizer):
    """The tokenizer of `Bpe`.

    `encode` puts a space before the text, so that its first word is encoded like every other word. `decode` removes
    this space. Neither does so with `within=True`.
    """

    units: Bpe
    """The configuration."""
    merges: tuple[tuple[str, str], ...] = field(repr=False)
    """The merged pairs in the order in which they are applied."""

    def encode(self, text: str, known: bool = False, within: bool = False) -> list[int]:
        """Returns the ids of `text`. Only characters can be unknown, because all other symbols consist of them."""
        text = normalize(text, self.units.lower)
        if not self._characters.issuperset(text):
            characters = Vocabulary(tuple(sorted(self._characters)))
            if not known:
                characters.encode(text)  # raises the error that lists the unknown characters
            text = "".join(characters.known(text))
        ids = self._tokenizer.encode(text if within else " " + text, add_special_tokens=False).ids if text else []
        return [RESERVED + n for n in ids]

    def unknown_symbols(self, text: str) -> tuple[list[str], int]:
        """Returns the unknown characters of `text`, and the number of all its characters."""
        text = normalize(text, self.units.lower)
        return [character for character in text if character not in self._characters], len(text)

    def decode(self, ids: Iterable, within: bool = False) -> str:
        """Concatenates the symbols of the ids."""
        text = "".join(self.vocabulary.decode(ids))
        return text if within else text.removeprefix(" ")

    def normalize(self, text: str) -> str:
        """Returns the text in NFC, in lower case if the configuration says so."""
        return normalize(text, self.units.lower)

    def to_json(self) -> dict[str, object]:
        """Returns the configuration, the symbols and the merges."""
        return super().to_json() | {"merges": [list(merge) for merge in self.merges]}

    @cached_property
    def _characters(self) -> frozenset[str]:
        """The known characters."""
        return frozenset(symbol for symbol in self.vocabulary.symbols if len(symbol) == 1)

    @cached_property
    def _tokenizer(self):
        """The tokenizer of the library `tokenizers` that applies the merges."""
        ids = {symbol: n for n, symbol in enumerate(self.vocabulary.symbols)}
        return _tokenizer(self.units, ids, self.merges)


def _tokenizer(units: Bpe, ids: dict[str, int], merges: Sequence[tuple[str, str]]):
    """Returns the tokenizer of the library `tokenizers` for a configuration, with the given ids and merges."""
    # Imported here because other tokenizers do not need it.
    from tokenizers import Regex, Tokenizer
    from tokenizers.models import BPE
    from tokenizers.pre_tokenizers import Split

    # A word takes one space before it along. White space beyond that is split into single characters.
    marks = r" ?[\p{L}\p{M}\p{N}]+| ?[^\s\p{L}\p{M}\p{N}]+|\s"
    tokenizer = Tokenizer(BPE(vocab=ids, merges=list(merges)))
    tokenizer.pre_tokenizer = Split(Regex(marks if units.punctuation else r" ?\S+|\s"), "isolated")
    return tokenizer
