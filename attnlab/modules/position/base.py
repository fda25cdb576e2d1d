"""Where tokens stand, told to a network by one of three hooks: `add` to the input, `turn` of q and k, `bias` on scores.

A position is a frozen value, listed in `POSITIONS`; `create` makes what a model holds of it (itself, unless it has
parameters).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from jaxtyping import Array, Float, Int, PRNGKeyArray

from attnlab.ops.position import rotary, sinusoidal


@dataclass(frozen=True)
class Position:
    """No position: every hook does nothing. What permutes the input permutes the output."""

    turning = False

    def check(self, width: int, heads: int) -> None:
        """Raise ValueError for a model of a width and so many heads that it cannot serve."""

    def create(self, key: PRNGKeyArray, width: int, heads: int) -> Any:
        """What a model of that width and so many heads holds."""
        return self

    def add(self, x: Float[Array, "T D"], i: Int[Array, " T"]) -> Float[Array, "T D"]:
        """The input with its positions."""
        return x

    def turn(self, q: Float[Array, "T K"], k: Float[Array, "S K"], i: Int[Array, " T"], j: Int[Array, " S"]):
        """Queries and keys of one head, turned by their positions."""
        return q, k

    def bias(self, heads: int) -> Any:
        """A callable pytree `(q, i, j) -> [T S]` with a leading axis of heads, or None."""
        return None


@dataclass(frozen=True)
class Sinusoidal(Position):
    """Sines and cosines added to the input (Vaswani et al. 2017, section 3.5)."""

    def check(self, width, heads):
        """The width must be even."""
        if width % 2:
            raise ValueError(f"model.width={width} must be even for sinusoidal positions")

    def add(self, x, i):
        """X + p_i."""
        return x + sinusoidal(i, x.shape[1], x.dtype)


@dataclass(frozen=True)
class Rotary(Position):
    """Each pair of components of q and k turned by its position, so that q·k tells the distance (Su et al. 2021)."""

    base: float = 10000.0
    turning = True

    def check(self, width, heads):
        """The width of a head must be even."""
        if (width // heads) % 2:
            raise ValueError(f"model.width={width} over model.heads={heads} must be even for rotary positions")

    def turn(self, q, k, i, j):
        """Both turned."""
        return rotary(q, i, self.base), rotary(k, j, self.base)


POSITIONS: dict[str, Position] = {
    "none": Position(),
    "sinusoidal": Sinusoidal(),
    "rotary": Rotary(),
}
