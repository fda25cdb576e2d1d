"""A mechanism around another one."""

from __future__ import annotations

from dataclasses import dataclass, replace

from attnlab.mechanisms.base import Mechanism


@dataclass(frozen=True)
class Wrapper(Mechanism):
    """`mechanism`, but for what a subclass makes of it."""

    mechanism: Mechanism

    @property
    def tokens(self):
        """Those of the mechanism."""
        return self.mechanism.tokens

    @property
    def learned(self):
        """Those of the mechanism."""
        return self.mechanism.learned

    @property
    def biases(self):
        """As the mechanism."""
        return self.mechanism.biases

    @property
    def placed(self):  # pyright: ignore[reportIncompatibleVariableOverride]
        """As the mechanism."""
        return self.mechanism.placed

    @property
    def unsteady(self):
        """As the mechanism."""
        return self.mechanism.unsteady

    @property
    def stateful(self):
        """As the mechanism."""
        return self.mechanism.stateful

    def initial(self, key, K, V):
        """As the mechanism."""
        return self.mechanism.initial(key, K, V)

    def heads(self, H):
        """As the mechanism."""
        return self.mechanism.heads(H)

    def cost(self, T, S, K, V, block=None):
        """That of the mechanism."""
        return self.mechanism.cost(T, S, K, V, block)

    def with_rotary(self, position):
        """Around the mechanism turned."""
        return None if (turned := self.mechanism.with_rotary(position)) is None else replace(self, mechanism=turned)

    def sized(self, length):
        """Around the mechanism for that length."""
        return replace(self, mechanism=self.mechanism.sized(length))

    def fit(self, length):
        """As the mechanism."""
        self.mechanism.fit(length)

    def check(self, block):
        """As the mechanism."""
        self.mechanism.check(block)
