"""A wrapper for sequences that follow an extra vector without a position, for example a class token."""

from __future__ import annotations

from dataclasses import dataclass

from attnlab.modules.position.base import PositionEncoding
from attnlab.ops.learned_score import Bias
from attnlab.ops.tree import pytree


class ShiftedByOne(PositionEncoding):
    """A position encoding with rows shifted by one: row 0 has position −1, and the sequence has 0, 1, ….

    An extra vector before the sequence then changes no position of the sequence, including those in a grid.
    """

    def __init__(self, position: PositionEncoding):
        self.position, self.config = position, getattr(position, "config", position)
        self.rotary, self.has_bias, self.has_values = position.rotary, position.has_bias, position.has_values
        self.rotation_size, self.factors = position.rotation_size, position.factors

    def of_layer(self, n):
        """Return the encoding of layer n, with shifted rows as well."""
        return ShiftedByOne(self.position.of_layer(n))

    def rotate(self, q, k, i, j):
        """Rotate q and k by positions i − 1 and j − 1."""
        return self.position.rotate(q, k, i - 1, j - 1)

    def bias(self, heads):
        """Return the bias of the inner encoding, evaluated at positions i − 1 and j − 1, or None if it has none."""
        return None if (bias := self.position.bias(heads)) is None else WrappedBias(bias)


@pytree
@dataclass(frozen=True)
class WrappedBias:
    """A bias evaluated at positions i − 1 and j − 1."""

    bias: Bias
    """The bias of the inner encoding."""

    def __call__(self, q, i, j):
        """Return the bias at i − 1 and j − 1, [T S]."""
        return self.bias(q, i - 1, j - 1)

    def weighted_values(self, weights, i, j):
        """Return the term of the values at i − 1 and j − 1, [T V]."""
        return self.bias.weighted_values(weights, i - 1, j - 1)
