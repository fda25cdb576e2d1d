"""A feature map of fewer components than it is given."""

from __future__ import annotations

from dataclasses import dataclass

from attnlab.ops.counts import check_counts
from attnlab.ops.feature.wrapper import FeatureWrapper


@dataclass(frozen=True)
class Narrow(FeatureWrapper):
    """φ(x) = `feature` of the first `width` components of x: keys narrower than the head, its values as wide as ever.

    As many features as `feature` has for that width: so that maps can be compared at one number of features, in
    networks of one size. Of projected queries and keys the first components are as good as any. Raises ValueError for
    a width below 1, and for rows that are narrower.
    """

    width: int = 1

    def __post_init__(self):
        check_counts(width=self.width)

    @property
    def closed(self):  # pyright: ignore[reportIncompatibleVariableOverride]
        """As the map."""
        return self.feature.closed

    @property
    def learned(self):
        """Those of the map, at its width."""
        shapes = self.feature.learned.items()
        return {name: tuple(self.width if size == "K" else size for size in shape) for name, shape in shapes}

    def initial(self, key, K):
        """As the map, at its width."""
        return self.feature.initial(key, self._within(K))

    def dim(self, K):
        """That of the map, at its width."""
        return self.feature.dim(self._within(K))

    def flops(self, K):
        """Those of the map, at its width."""
        return self.feature.flops(self._within(K))

    def query(self, x, i, **learned):
        """The map of the first components."""
        return self.feature.query(x[:, : self._within(x.shape[1])], i, **learned)

    def key(self, x, j, **learned):
        """The map of the first components."""
        return self.feature.key(x[:, : self._within(x.shape[1])], j, **learned)

    def kernel(self, q, k, **learned):
        """That of the first components."""
        width = self._within(q.shape[1])
        return self.feature.kernel(q[:, :width], k[:, :width], **learned)

    def _within(self, K: int) -> int:
        if self.width > K:
            raise ValueError(f"width={self.width} must be at most the {K} components that a key has")
        return self.width
