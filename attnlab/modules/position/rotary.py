"""Position encodings that rotate queries and keys."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from attnlab.modules.position.base import Position
from attnlab.ops.position import rotary, xpos, xpos_max_length


@dataclass(frozen=True)
class Rotary(Position):
    """Rotation of pairs of components of q and k by their positions, so q·k depends on distance (Su et al. 2021)."""

    base: float = 10000.0
    """Base of the frequencies: pair n rotates by base^(−2n/K) per position."""
    pairs: Literal["interleaved", "halves"] = "interleaved"
    """Which components of a head rotate together.

    "interleaved": 2n and 2n+1, as in the paper and GPT-J. "halves": n and n + K/2, as in GPT-NeoX, Llama and Hugging
    Face's `rotate_half`. Weights trained with one are wrong with the other.
    """
    rotary = True
    rotation_size = 2

    def __post_init__(self):
        _above_zero(base=self.base)
        if self.pairs not in ("interleaved", "halves"):
            raise ValueError(f"pairs={self.pairs!r} must be one of interleaved, halves")

    def check(self, width, heads):
        """Raise ValueError if the width of a head is odd."""
        even_heads(width, heads, "rotary")

    def rotate(self, q, k, i, j):
        """Return q and k rotated by their positions."""
        halves = self.pairs == "halves"
        return rotary(q, i, self.base, halves), rotary(k, j, self.base, halves)


@dataclass(frozen=True)
class XPos(Position):
    """Rotary positions, interleaved, whose products decay with the distance i−j (Sun et al. 2022).

    The product of pair n decays by ζ_n^{(i−j) / scale}. Towards the future it would grow without bound, so an encoder
    uses the rotation without the decay.

    The factors of q and of k leave the range of the dtype as positions grow. `max_length` is the resulting limit
    (18,130 for float32 and scale 512). A longer sequence raises ValueError.
    """

    base: float = 10000.0
    """Base of the frequencies, as in `Rotary`."""
    scale: float = 512.0
    """Number of positions over which pair n decays by ζ_n."""
    rotary = True

    def __post_init__(self):
        _above_zero(base=self.base, scale=self.scale)

    def check(self, width, heads):
        """Raise ValueError if the width of a head is odd."""
        even_heads(width, heads, "xpos")

    def max_length(self, dtype):
        """Return the length up to which the factors stay within the square root of the dtype's range."""
        return xpos_max_length(dtype, self.scale)

    def create(self, key, width, heads, layers=1, causal=False):
        """Return this encoding if queries see only the past, else `Rotary` with the same base."""
        return self if causal else Rotary(self.base)

    def table(self, length, dtype):
        """Check the length. There is nothing to compute."""
        return self.check_length(length, dtype)

    def rotate(self, q, k, i, j):
        """Return q and k rotated, with queries scaled down and keys scaled up as positions grow."""
        return xpos(q, i, 1, self.base, self.scale), xpos(k, j, -1, self.base, self.scale)


def even_heads(width: int, heads: int, name: str, by: int = 2) -> None:
    """Raise ValueError if the width of a head is not divisible by `by`."""
    if (width // heads) % by:
        must = "be even" if by == 2 else f"be divisible by {by}"
        raise ValueError(f"model.width={width} over model.heads={heads} must {must} for {name} positions")


def _above_zero(**numbers: float) -> None:
    for name, number in numbers.items():
        if not number > 0:
            raise ValueError(f"{name}={number} must be above 0")
