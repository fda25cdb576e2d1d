"""Any position, for a sequence behind one more vector that has no place in it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from attnlab.modules.position.base import PositionEncoding
from attnlab.ops.tree import pytree


class Wrapped(PositionEncoding):
    """What `position` tells layers of rows that stand one place earlier: row 0 at −1, the sequence at 0, 1, ….

    So that what is in front of a sequence moves none of it, in a grid either.
    """

    def __init__(self, position: PositionEncoding):
        self.position, self.config = position, getattr(position, "config", position)
        self.turning, self.biasing, self.valued = position.turning, position.biasing, position.valued
        self.rotates = position.rotates

    def rotate(self, q, k, i, j):
        """Both turned, one place earlier."""
        return self.position.rotate(q, k, i - 1, j - 1)

    def bias(self, heads):
        """That of the position, one place earlier."""
        return None if (bias := self.position.bias(heads)) is None else WrappedBias(bias)


@pytree
@dataclass(frozen=True)
class WrappedBias:
    """A bias of rows that stand one place earlier."""

    bias: Any

    def __call__(self, q, i, j):
        """The bias there: [T S]."""
        return self.bias(q, i - 1, j - 1)

    def weighted_values(self, weights, i, j):
        """What joins the values there: [T V]."""
        return self.bias.weighted_values(weights, i - 1, j - 1)
