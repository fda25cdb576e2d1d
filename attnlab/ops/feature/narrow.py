"""A feature map of the first components of its input."""

from __future__ import annotations

from dataclasses import dataclass

from attnlab.ops.counts import check_counts
from attnlab.ops.feature.wrapper import FeatureWrapper


@dataclass(frozen=True)
class Narrow(FeatureWrapper):
    """φ(x) = `feature` of the first `width` components of x: keys narrower than the head, values of its full width.

    It has as many features as `feature` has for that width. So maps can be compared at the same number of features, in
    networks of the same size. The choice of components does not matter, because queries and keys are learned
    projections.

    Raises:
      ValueError: if `width` is below 1, or if a row has fewer components.
    """

    width: int = 1
    """Number of components that the map uses."""

    def __post_init__(self):
        check_counts(width=self.width)

    @property
    def has_kernel(self):  # pyright: ignore[reportIncompatibleVariableOverride]
        """Whether the map has a kernel."""
        return self.feature.has_kernel

    @property
    def learned(self):
        """Shapes for the map, at its width."""
        shapes = self.feature.learned.items()
        return {name: tuple(self.width if size == "K" else size for size in shape) for name, shape in shapes}

    def initial(self, key, K):
        """Returns initial values for the map, at its width."""
        return self.feature.initial(key, self._within(K))

    def dim(self, K):
        """Returns the number of features of the map, at its width."""
        return self.feature.dim(self._within(K))

    def flops(self, K):
        """Returns the operations of the map, at its width."""
        return self.feature.flops(self._within(K))

    def query(self, x, i, **learned):
        """Maps the first components."""
        return self.feature.query(x[:, : self._within(x.shape[1])], i, **learned)

    def key(self, x, j, **learned):
        """Maps the first components."""
        return self.feature.key(x[:, : self._within(x.shape[1])], j, **learned)

    def kernel(self, q, k, **learned):
        """Returns the kernel of the first components."""
        width = self._within(q.shape[1])
        return self.feature.kernel(q[:, :width], k[:, :width], **learned)

    def _within(self, K: int) -> int:
        """Returns the width, or raises ValueError if a row is narrower."""
        if self.width > K:
            raise ValueError(f"width={self.width} must be at most {K}, the number of components of a key")
        return self.width
