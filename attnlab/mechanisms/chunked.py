"""What mechanisms have in common whose causal form goes by chunks of tokens."""

from __future__ import annotations

from dataclasses import dataclass

from attnlab.mechanisms.base import Mechanism


@dataclass(frozen=True)
class Chunked(Mechanism):
    """Tokens of one chunk meet in products of matrices; from chunk to chunk goes a state.

    Raises ValueError for a chunk below 1.
    """

    chunk: int = 64

    def __post_init__(self):
        if self.chunk < 1:
            raise ValueError(f"chunk={self.chunk} must be at least 1")

    def at_once(self, block: int | None) -> int:
        """Tokens that meet, where `block` come at a time (None: all)."""
        return self.chunk if block is None else min(block, self.chunk)
