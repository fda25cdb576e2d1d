"""Positions that turn queries and keys."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from attnlab.modules.position.base import Position
from attnlab.ops.position import rotary, xpos, xpos_max_length


@dataclass(frozen=True)
class Rotary(Position):
    """Each pair of components of q and k turned by its position, so that q·k tells the distance (Su et al. 2021).

    `pairs` says which components of a head are turned together: "interleaved" 2n and 2n+1, as in the paper and GPT-J;
    "halves" n and n + K/2, as in GPT-NeoX, Llama and Hugging Face's `rotate_half`. Weights that were trained with one
    are wrong with the other.
    """

    base: float = 10000.0
    pairs: Literal["interleaved", "halves"] = "interleaved"
    turning = True
    rotates = 2

    def __post_init__(self):
        _above_zero(base=self.base)
        if self.pairs not in ("interleaved", "halves"):
            raise ValueError(f"pairs={self.pairs!r} must be one of interleaved, halves")

    def check(self, width, heads):
        """The width of a head must be even."""
        even_heads(width, heads, "rotary")

    def rotate(self, q, k, i, j):
        """Both turned."""
        halves = self.pairs == "halves"
        return rotary(q, i, self.base, halves), rotary(k, j, self.base, halves)


@dataclass(frozen=True)
class XPos(Position):
    """Rotary positions, interleaved, whose products fade with the distance i−j (Sun et al. 2022).

    Product n fades by ζ_n^{(i−j) / scale}; towards the future it would grow without bound, so that an encoder turns
    only. The factors of one side leave a dtype's range as positions grow: `reach` of them are told (float32, scale
    512: 18,130), and a longer sequence raises ValueError.
    """

    base: float = 10000.0
    scale: float = 512.0
    turning = True

    def __post_init__(self):
        _above_zero(base=self.base, scale=self.scale)

    def check(self, width, heads):
        """The width of a head must be even."""
        even_heads(width, heads, "xpos")

    def max_length(self, dtype):
        """As far as the factors stay within the square root of the dtype's range."""
        return xpos_max_length(dtype, self.scale)

    def create(self, key, width, heads, layers=1, causal=False):
        """Itself where the past alone is seen, else plain turns."""
        return self if causal else Rotary(self.base)

    def table(self, length, dtype):
        """Nothing is worked out, but the length is checked."""
        return self.check_length(length, dtype)

    def rotate(self, q, k, i, j):
        """Both turned; queries scaled down and keys up as positions grow."""
        return xpos(q, i, 1, self.base, self.scale), xpos(k, j, -1, self.base, self.scale)


def even_heads(width: int, heads: int, name: str, by: int = 2) -> None:
    """Raise ValueError where the width of a head is not divisible by `by`."""
    if (width // heads) % by:
        must = "be even" if by == 2 else f"be divisible by {by}"
        raise ValueError(f"model.width={width} over model.heads={heads} must {must} for {name} positions")


def _above_zero(**numbers: float) -> None:
    for name, number in numbers.items():
        if not number > 0:
            raise ValueError(f"{name}={number} must be above 0")
