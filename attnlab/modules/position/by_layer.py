"""Position encodings that differ by layer."""

from __future__ import annotations

from collections.abc import Sequence

from flax import nnx

from attnlab.modules.position.base import PositionEncoding


class LayerPositions(PositionEncoding, nnx.Module):
    """Position encodings of successive layers, repeated until all layers have one.

    Each rotates queries and keys, adds to scores, or does nothing. None adds to the input, which layers share.

    Args:
        encodings: The encodings of one period.
    """

    def __init__(self, encodings: Sequence[PositionEncoding]):
        self.count = len(encodings)
        for n, encoding in enumerate(encodings):
            # As attributes: an encoding without parameters is not a pytree, so it cannot be in an `nnx.List`.
            setattr(self, f"encoding_{n}", encoding)

    def __str__(self) -> str:
        return "+".join(str(self.of_layer(n)) for n in range(self.count))

    def of_layer(self, n):
        """Return the encoding of layer n."""
        return getattr(self, f"encoding_{n % self.count}")

    def table(self, length, dtype):
        """Check the length for every encoding. There is nothing to compute."""
        for n in range(self.count):
            self.of_layer(n).table(length, dtype)
