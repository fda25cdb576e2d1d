"""Symbols as integers and back."""

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
    """The symbols a model knows: `symbols[n]` has the id `n + 3`, for PAD, BEGIN and END stand before them.

    A symbol is any non-empty string: a character, a phone, an integer. ValueError for one listed twice.
    """

    symbols: tuple[str, ...]

    def __post_init__(self):
        if len(self._ids) < len(self.symbols) or "" in self._ids:
            raise ValueError("vocabulary: symbols must differ and none may be empty")

    @classmethod
    def of(cls, sequences: Iterable[Symbols]) -> "Vocabulary":
        """The vocabulary of all symbols that occur, in the order of their code points."""
        return cls(tuple(sorted({symbol for sequence in sequences for symbol in sequence})))

    @cached_property
    def _ids(self) -> dict[str, int]:
        return {symbol: n for n, symbol in enumerate(self.symbols, start=RESERVED)}

    @property
    def size(self) -> int:
        """How many ids there are, the reserved ones among them."""
        return RESERVED + len(self.symbols)

    def encode(self, sequence: Symbols) -> list[int]:
        """The ids of a sequence, without marks; DataError listing symbols never seen and where they stand."""
        try:
            return [self._ids[symbol] for symbol in sequence]
        except KeyError:
            raise DataError(self._refusal(sequence)) from None

    def known(self, sequence: Symbols) -> list[str]:
        """The sequence without the symbols never seen, as a reader skips unknown letters."""
        return [symbol for symbol in sequence if symbol in self._ids]

    def unknown(self, sequence: Symbols) -> list[str]:
        """The symbols of the sequence that were never seen, as often as they stand in it."""
        return [symbol for symbol in sequence if symbol not in self._ids]

    def decode(self, ids: Iterable) -> tuple[str, ...]:
        """The symbols up to the end mark, without padding and begin marks; ValueError beyond the size."""
        answer = []
        for n in map(int, ids):
            if n == END:
                break
            if not 0 <= n < self.size:
                raise ValueError(f"vocabulary: id {n} must lie in 0 … {self.size - 1}")
            if n >= RESERVED:
                answer.append(self.symbols[n - RESERVED])
        return tuple(answer)

    def to_json(self) -> list[str]:
        """The symbols as JSON holds them."""
        return list(self.symbols)

    @classmethod
    def from_json(cls, symbols: object, path: str | Path = "vocabulary") -> "Vocabulary":
        """The vocabulary that `to_json` wrote; DataError naming `path` where it is none."""
        if not isinstance(symbols, list) or not all(isinstance(symbol, str) for symbol in symbols):
            raise DataError(f"{path} holds no list of symbols")
        try:
            return cls(tuple(symbols))
        except ValueError as error:
            raise DataError(f"{path}: {error}") from error

    def _refusal(self, sequence: Symbols, most: int = 4) -> str:
        missing = [(n, symbol) for n, symbol in enumerate(sequence, start=1) if symbol not in self._ids]
        shown = ", ".join(f"{require_symbol(symbol)} at position {n}" for n, symbol in missing[:most])
        more = f" and {len(missing) - most} more" if len(missing) > most else ""
        seen = " ".join(self.symbols[:24]) + (" …" if len(self.symbols) > 24 else "")
        return f"never seen in training: {shown}{more}; seen in training ({len(self.symbols)}): {seen}"


def require_symbol(symbol: str) -> str:
    """The symbol with its code points, which tell apart what looks the same, such as Latin а and Cyrillic а."""
    points = " ".join(f"U+{ord(character):04X}" for character in symbol)
    return f"{json.dumps(symbol, ensure_ascii=False)} ({points})"
