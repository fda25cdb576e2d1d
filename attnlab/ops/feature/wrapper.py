"""A feature map around another one."""

from __future__ import annotations

from dataclasses import dataclass, replace

from attnlab.ops.feature.base import Feature
from attnlab.ops.feature.elementwise import EluPlusOne


@dataclass(frozen=True)
class FeatureWrapper(Feature):
    """`feature`, but for what a subclass makes of it."""

    feature: Feature = EluPlusOne()

    @property
    def scaled(self):  # pyright: ignore[reportIncompatibleVariableOverride]
        """As the map."""
        return self.feature.scaled

    @property
    def signed(self):  # pyright: ignore[reportIncompatibleVariableOverride]
        """As the map."""
        return self.feature.signed

    @property
    def placed(self):  # pyright: ignore[reportIncompatibleVariableOverride]
        """As the map."""
        return self.feature.placed

    @property
    def learned(self):
        """Those of the map."""
        return self.feature.learned

    def initial(self, key, K):
        """As the map."""
        return self.feature.initial(key, K)

    def dim(self, K):
        """That of the map."""
        return self.feature.dim(K)

    def flops(self, K):
        """Those of the map."""
        return self.feature.flops(K)

    def query(self, x, i, **learned):
        """As the map."""
        return self.feature.query(x, i, **learned)

    def key(self, x, j, **learned):
        """As the map."""
        return self.feature.key(x, j, **learned)

    def aligned(self, i, j):
        """As the map."""
        return self.feature.aligned(i, j)

    def check(self, i):
        """As the map."""
        self.feature.check(i)

    def fit(self, length):
        """As the map."""
        self.feature.fit(length)

    def sized(self, length):
        """With the map for that length."""
        return replace(self, feature=self.feature.sized(length))
