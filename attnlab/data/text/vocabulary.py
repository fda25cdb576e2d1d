"""Vocabularies: symbols as integer ids, and back."""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from attnlab.data.io.files import DataError
from attnlab.data.text.example import Symbols

PAD, BEGIN, END = 0, 1, 2
RESERVED = 3


@dataclass(frozen=True)
class Vocabulary:
    """The symbols that a model knows, with their ids.

    The ids 0, 1 and 2 are PAD, BEGIN and END, so `symbols[n]` has the id `n + 3`.

    Raises:
      ValueError: if a symbol is empty or listed twice.
    """

    symbols: tuple[str, ...]
    """The symbols in the order of their ids. A symbol is any non-empty string: a character, a phone, an integer."""

    def __post_init__(self):
        if len(self._ids) < len(self.symbols) or "" in self._ids:
            raise ValueError("vocabulary: symbols must be unique and not empty")

    @classmethod
    def of(cls, sequences: Iterable[Symbols]) -> "Vocabulary":
        """Returns the vocabulary of all symbols that occur in `sequences`, in the order of their code points."""
        return cls(tuple(sorted({symbol for sequence in sequences for symbol in sequence})))

    @cached_property
    def _ids(self) -> dict[str, int]:
        """The id of each symbol."""
        return {symbol: n for n, symbol in enumerate(self.symbols, start=RESERVED)}

    @property
    def size(self) -> int:
        """The number of ids, including the reserved ones."""
        return RESERVED + len(self.symbols)

    def encode(self, sequence: Symbols) -> list[int]:
        """Returns the ids of a sequence, without BEGIN and END.

        Raises:
          DataError: if a symbol is not in the vocabulary. The message lists these symbols and their positions.
        """
        try:
            return [self._ids[symbol] for symbol in sequence]
        except KeyError:
            raise DataError(self._refusal(sequence)) from None

    def known(self, sequence: Symbols) -> list[str]:
        """Returns the sequence without the symbols that are not in the vocabulary."""
        return [symbol for symbol in sequence if symbol in self._ids]

    def unknown(self, sequence: Symbols) -> list[str]:
        """Returns the symbols of the sequence that are not in the vocabulary, once for each occurrence."""
        return [symbol for symbol in sequence if symbol not in self._ids]

    def decode(self, ids: Iterable) -> tuple[str, ...]:
        """Returns the symbols of ids up to the first END, without PAD and BEGIN.

        Raises:
          ValueError: if an id is not in 0 … size − 1.
        """
        answer = []
        for n in map(int, ids):
            if n == END:
                break
            if not 0 <= n < self.size:
                raise ValueError(f"vocabulary: id {n} must be in 0 … {self.size - 1}")
            if n >= RESERVED:
                answer.append(self.symbols[n - RESERVED])
        return tuple(answer)

    def to_json(self) -> list[str]:
        """Returns the symbols as a list, for JSON."""
        return list(self.symbols)

    @classmethod
    def from_json(cls, symbols: object, path: str | Path = "vocabulary") -> "Vocabulary":
        """Reads the vocabulary that `to_json` wrote.

        Args:
          symbols: the value read from JSON.
          path: the file it comes from, used in messages.

        Raises:
          DataError: if `symbols` is not a list of different, non-empty strings.
        """
        if not isinstance(symbols, list) or not all(isinstance(symbol, str) for symbol in symbols):
            raise DataError(f"{path} contains no list of symbols")
        try:
            return cls(tuple(symbols))
        except ValueError as error:
            raise DataError(f"{path}: {error}") from error

    def _refusal(self, sequence: Symbols, most: int = 4) -> str:
        """Returns the message for a sequence with unknown symbols; at most `most` of them are listed."""
        missing = [(n, symbol) for n, symbol in enumerate(sequence, start=1) if symbol not in self._ids]
        shown = ", ".join(f"{require_symbol(symbol)} at position {n}" for n, symbol in missing[:most])
        more = f" and {len(missing) - most} more" if len(missing) > most else ""
        known = " ".join(self.symbols[:24]) + (" …" if len(self.symbols) > 24 else "")
        return f"never seen in training: {shown}{more}; seen in training ({len(self.symbols)}): {known}"


def require_symbol(symbol: str) -> str:
    """Returns the symbol in quotes with its code points.

    Code points distinguish symbols that look the same, for example Latin а and Cyrillic а.
    """
    points = " ".join(f"U+{ord(character):04X}" for character in symbol)
    return f"{json.dumps(symbol, ensure_ascii=False)} ({points})"
