"""Masks given by a formula of positions."""

from dataclasses import dataclass
from numbers import Integral

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Int

from attnlab.ops.mask.base import Mask
from attnlab.ops.tree import pytree, static


def _whole(least: int, mask: str, **sizes: int) -> None:
    """Raises ValueError for a size that is not an integer of at least `least`."""
    for name, size in sizes.items():
        if not isinstance(size, Integral) or size < least:
            raise ValueError(f"{mask}: {name}={size} must be an integer of at least {least}")


def _pairs(i, j, allowed):
    """Broadcasts values to [T S].

    If all inputs are numpy arrays, so is the result: a constant of the trace. Else it is a jax array, which the
    compiled program need not store.
    """
    known = all(isinstance(x, np.ndarray | np.bool_) for x in (i, j, allowed))
    return (np if known else jnp).broadcast_to(allowed, (i.shape[0], j.shape[0]))


@pytree
@dataclass(frozen=True)
class Full(Mask):
    """Allows every pair."""

    keys_only = True

    def __call__(self, i, j):
        """True for every pair."""
        return _pairs(i, j, np.bool_(True))

    def over(self, i0, i1, j0, j1):
        """Always True."""
        return True


@pytree
@dataclass(frozen=True)
class Causal(Mask):
    """Lets a query see no later key: j ≤ i."""

    def __call__(self, i, j):
        """j ≤ i."""
        return j[None, :] <= i[:, None]

    def over(self, i0, i1, j0, j1):
        """True at or below the diagonal, False above it, None if the block crosses it."""
        return True if j1 - 1 <= i0 else False if j0 > i1 - 1 else None


@pytree
@dataclass(frozen=True)
class Window(Mask):
    """A window around the query: −right < i−j < left.

    `Window(1, 1)` allows only the token itself. `Window(n, 1)` is a causal window of n tokens.

    Raises:
      ValueError: if a side is not an integer of at least 1.
    """

    left: int = static()
    """Number of positions up to and including the query's own that it sees on the left."""
    right: int = static()
    """Number of positions from the query's own on that it sees on the right."""

    def __post_init__(self):
        _whole(1, "Window", left=self.left, right=self.right)

    def __call__(self, i, j):
        """−right < i−j < left."""
        distance = i[:, None] - j[None, :]
        return (-self.right < distance) & (distance < self.left)

    def over(self, i0, i1, j0, j1):
        """Compares the smallest and the largest i−j of the block with the window."""
        low, high = i0 - (j1 - 1), (i1 - 1) - j0
        if high <= -self.right or low >= self.left:
            return False
        return True if -self.right < low and high < self.left else None


@pytree
@dataclass(frozen=True)
class Dilated(Mask):
    """Allows every `step`-th key, counted from the query: (i−j) mod step = 0.

    Raises:
      ValueError: if `step` is not an integer of at least 1.
    """

    step: int = static()
    """Distance between two neighbouring keys that a query sees."""

    def __post_init__(self):
        _whole(1, "Dilated", step=self.step)

    def __call__(self, i, j):
        """(i−j) mod step = 0."""
        return (i[:, None] - j[None, :]) % self.step == 0

    def over(self, i0, i1, j0, j1):
        """True for step 1, False if no multiple of the step is between the smallest and the largest i−j, else None."""
        low, high = i0 - (j1 - 1), (i1 - 1) - j0
        return True if self.step == 1 else None if low <= high // self.step * self.step else False


@pytree
@dataclass(frozen=True)
class Global(Mask):
    """Lets the first `tokens` positions see everything and be seen by everything: i < tokens or j < tokens.

    Raises:
      ValueError: if `tokens` is not an integer of at least 0.
    """

    tokens: int = static()
    """Number of global positions."""

    def __post_init__(self):
        _whole(0, "Global", tokens=self.tokens)

    def __call__(self, i, j):
        """i < tokens or j < tokens."""
        return (i[:, None] < self.tokens) | (j[None, :] < self.tokens)

    def over(self, i0, i1, j0, j1):
        """True if all queries or all keys of the block are global, False if none is, else None."""
        if i1 <= self.tokens or j1 <= self.tokens:
            return True
        return False if i0 >= self.tokens and j0 >= self.tokens else None


@pytree
@dataclass(frozen=True, eq=False)
class Keys(Mask):
    """Allows the first `count` keys, where the rest is padding: j < count."""

    count: Int[Array, ""] | int
    """Number of keys that are allowed. An array is traced."""
    keys_only = True

    def __call__(self, i, j):
        """j < count."""
        return _pairs(i, j, j[None, :] < self.count)

    def over(self, i0, i1, j0, j1):
        """Compares the block with the count; None if the count is not a Python int."""
        if not isinstance(self.count, int):
            return None
        return True if j1 <= self.count else False if j0 >= self.count else None


@pytree
@dataclass(frozen=True, eq=False)
class Prefix(Keys):
    """A prefix that every query may see: j < count. Prefix-LM attention is `Causal() | Prefix(n)`."""
