"""Masks that are formulas of positions."""

from dataclasses import dataclass
from numbers import Integral

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Int

from attnlab.ops.mask.base import Mask
from attnlab.ops.tree import pytree, static


def _whole(least: int, mask: str, **sizes: int) -> None:
    for name, size in sizes.items():
        if not isinstance(size, Integral) or size < least:
            raise ValueError(f"{mask}({name}={size}): a whole number, at least {least}")


def _pairs(i, j, seen):
    """A row of answers as one for every pair: numpy's where positions are, else an array that a trace need not hold."""
    known = all(isinstance(x, np.ndarray | np.bool_) for x in (i, j, seen))
    return (np if known else jnp).broadcast_to(seen, (i.shape[0], j.shape[0]))


@pytree
@dataclass(frozen=True)
class Full(Mask):
    """Every query sees every key."""

    keys_only = True

    def __call__(self, i, j):
        """True everywhere."""
        return _pairs(i, j, np.bool_(True))

    def over(self, i0, i1, j0, j1):
        """All."""
        return True


@pytree
@dataclass(frozen=True)
class Causal(Mask):
    """No query sees a key behind itself: j ≤ i."""

    def __call__(self, i, j):
        """j ≤ i."""
        return j[None, :] <= i[:, None]

    def over(self, i0, i1, j0, j1):
        """All below the diagonal, none above."""
        return True if j1 - 1 <= i0 else False if j0 > i1 - 1 else None


@pytree
@dataclass(frozen=True)
class Window(Mask):
    """A window around the query: −right < i−j < left. `Window(1, 1)` is the token itself."""

    left: int = static()
    right: int = static()

    def __post_init__(self):
        _whole(1, "Window", left=self.left, right=self.right)

    def __call__(self, i, j):
        """−right < i−j < left."""
        distance = i[:, None] - j[None, :]
        return (-self.right < distance) & (distance < self.left)

    def over(self, i0, i1, j0, j1):
        """By the nearest and the farthest pair."""
        low, high = i0 - (j1 - 1), (i1 - 1) - j0
        if high <= -self.right or low >= self.left:
            return False
        return True if -self.right < low and high < self.left else None


@pytree
@dataclass(frozen=True)
class Dilated(Mask):
    """Every `step`-th key, counted from the query: (i−j) mod step = 0."""

    step: int = static()

    def __post_init__(self):
        _whole(1, "Dilated", step=self.step)

    def __call__(self, i, j):
        """(i−j) mod step = 0."""
        return (i[:, None] - j[None, :]) % self.step == 0

    def over(self, i0, i1, j0, j1):
        """All for a step of one; else none where no multiple lies between the nearest and the farthest pair."""
        low, high = i0 - (j1 - 1), (i1 - 1) - j0
        return True if self.step == 1 else None if low <= high // self.step * self.step else False


@pytree
@dataclass(frozen=True)
class Global(Mask):
    """The first `tokens` positions see all and are seen by all: i < tokens or j < tokens."""

    tokens: int = static()

    def __post_init__(self):
        _whole(0, "Global", tokens=self.tokens)

    def __call__(self, i, j):
        """Where i < tokens or j < tokens."""
        return (i[:, None] < self.tokens) | (j[None, :] < self.tokens)

    def over(self, i0, i1, j0, j1):
        """By which side of the last global token the block lies on."""
        if i1 <= self.tokens or j1 <= self.tokens:
            return True
        return False if i0 >= self.tokens and j0 >= self.tokens else None


@pytree
@dataclass(frozen=True, eq=False)
class Keys(Mask):
    """The first `count` keys, the rest being padding: j < count."""

    count: Int[Array, ""] | int
    keys_only = True

    def __call__(self, i, j):
        """j < count."""
        return _pairs(i, j, j[None, :] < self.count)

    def over(self, i0, i1, j0, j1):
        """Where the count is known."""
        if not isinstance(self.count, int):
            return None
        return True if j1 <= self.count else False if j0 >= self.count else None


@pytree
@dataclass(frozen=True, eq=False)
class Prefix(Keys):
    """A prefix that all may see: j < count. Prefix attention is `Causal() | Prefix(n)`."""
