"""The base class of feature maps that wrap another one."""

from __future__ import annotations

from dataclasses import dataclass, replace

from attnlab.ops.feature.base import Feature
from attnlab.ops.feature.elementwise import EluPlusOne


@dataclass(frozen=True)
class FeatureWrapper(Feature):
    """Passes everything on to `feature`; a subclass overrides what it changes."""

    feature: Feature = EluPlusOne()
    """The wrapped map."""

    @property
    def scaled(self):  # pyright: ignore[reportIncompatibleVariableOverride]
        """Whether the wrapped map returns scales."""
        return self.feature.scaled

    @property
    def signed(self):  # pyright: ignore[reportIncompatibleVariableOverride]
        """Whether features of the wrapped map may be negative."""
        return self.feature.signed

    @property
    def position_dependent(self):  # pyright: ignore[reportIncompatibleVariableOverride]
        """Whether rows of the wrapped map depend on positions."""
        return self.feature.position_dependent

    @property
    def learned(self):
        """Shapes of the wrapped map's learned arrays."""
        return self.feature.learned

    def initial(self, key, K):
        """Returns initial values for the wrapped map."""
        return self.feature.initial(key, K)

    def dim(self, K):
        """Returns the number of features of the wrapped map."""
        return self.feature.dim(K)

    def flops(self, K):
        """Returns the operations of the wrapped map."""
        return self.feature.flops(K)

    def query(self, x, i, **learned):
        """Maps queries by the wrapped map."""
        return self.feature.query(x, i, **learned)

    def key(self, x, j, **learned):
        """Maps keys by the wrapped map."""
        return self.feature.key(x, j, **learned)

    def aligned(self, i, j):
        """Aligns positions by the wrapped map."""
        return self.feature.aligned(i, j)

    def check(self, i):
        """Checks positions by the wrapped map."""
        self.feature.check(i)

    def check_length(self, length):
        """Checks a length by the wrapped map."""
        self.feature.check_length(length)

    def with_length(self, length):
        """Returns the wrapper with the wrapped map for `length` positions."""
        return replace(self, feature=self.feature.with_length(length))
