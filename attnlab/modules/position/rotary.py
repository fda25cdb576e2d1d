"""Position encodings that rotate queries and keys."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

from attnlab.modules.position.base import Position
from attnlab.ops.counts import check_positive
from attnlab.ops.position import RotaryScaling, rotary, xpos, xpos_max_length


@dataclass(frozen=True)
class Rotary(Position):
    """Rotation of pairs of components of q and k by their positions, so q·k depends on distance (Su et al. 2021).

    Raises:
        ValueError: `base` is not above 0, or not above 1 with a scaling, `fraction` is not above 0 and at most 1, or
            `pairs` is unknown.
    """

    base: float = 10000.0
    """Base of the frequencies: pair n rotates by base^(−2n/K) per position."""
    pairs: Literal["interleaved", "halves"] = "interleaved"
    """Which components of a head rotate together.

    "interleaved": 2n and 2n+1, as in the paper and GPT-J. "halves": n and n + K/2, as in GPT-NeoX, Llama and Hugging
    Face's `rotate_half`. Weights trained with one are wrong with the other.
    """
    fraction: float = 1.0
    """Share of a head's components that rotates, as a head of that width. The others pass unchanged.

    GPT-NeoX and Qwen3-Next rotate a quarter.
    """
    scaling: RotaryScaling | None = None
    """Change of the frequencies for longer sequences, one of `attnlab.SCALINGS`, or None."""
    rotary = True
    factors = "an attention factor; set model.position.scaling.attention_factor=1"

    def __post_init__(self):
        check_positive(base=self.base)
        if not 0 < self.fraction <= 1:
            raise ValueError(f"fraction={self.fraction} must be above 0 and at most 1")
        if self.scaling is not None and self.base <= 1:
            raise ValueError(f"base={self.base} must be above 1 with scaling={self.scaling}")
        if self.pairs not in ("interleaved", "halves"):
            raise ValueError(f"pairs={self.pairs!r} must be one of interleaved, halves")

    def check(self, width, heads):
        """Raise ValueError if the rotated components of a head are not an even number."""
        even_heads(width, heads, "rotary" if self.fraction == 1 else f"rotary (fraction={self.fraction})", self._group)

    @property
    def rotation_size(self):  # pyright: ignore[reportIncompatibleVariableOverride]
        """The smallest width of which `fraction` is an even number; 0 if the scaling multiplies what it rotates."""
        return 0 if self.scaling is not None and self.scaling.multiplier != 1 else self._group

    def rotate(self, q, k, i, j):
        """Return q and k rotated by their positions. Raise ValueError if their share is not an even number."""
        if q.shape[1] % self._group:
            raise ValueError(f"fraction={self.fraction} of {q.shape[1]} components is not an even number")
        size, halves = round(q.shape[1] * self._share), self.pairs == "halves"
        turned = lambda x, at: rotary(x, at, self.base, halves, size, self.scaling)
        return turned(q, i), turned(k, j)

    @property
    def _share(self) -> Fraction:
        return Fraction(self.fraction).limit_denominator(10**6)

    @property
    def _group(self) -> int:
        share = self._share
        return share.denominator * (1 + share.numerator % 2)


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
        check_positive(base=self.base, scale=self.scale)

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
    """Raise ValueError if the width of a head is not divisible by `by`.

    Args:
        width: Width of the model.
        heads: Number of heads.
        name: The name of the encoding, for the message.
        by: The divisor. Default: 2.
    """
    if (width // heads) % by:
        must = "be even" if by == 2 else f"be divisible by {by}"
        raise ValueError(f"model.width={width} over model.heads={heads} must {must} for {name} positions")
