"""Base class of mechanisms that wrap another one."""

from __future__ import annotations

from dataclasses import dataclass, replace

from attnlab.mechanisms.base import Mechanism


@dataclass(frozen=True)
class Wrapper(Mechanism):
    """Passes everything on to `mechanism`, except what a subclass overrides."""

    mechanism: Mechanism
    """The wrapped mechanism."""

    @property
    def tokens(self):
        """Extra inputs of the wrapped mechanism."""
        return self.mechanism.tokens

    @property
    def learned(self):
        """Learned arrays of the wrapped mechanism."""
        return self.mechanism.learned

    @property
    def biases(self):
        """As in the wrapped mechanism."""
        return self.mechanism.biases

    @property
    def placed(self):  # pyright: ignore[reportIncompatibleVariableOverride]
        """As in the wrapped mechanism."""
        return self.mechanism.placed

    @property
    def unsteady(self):
        """As in the wrapped mechanism."""
        return self.mechanism.unsteady

    @property
    def stateful(self):
        """As in the wrapped mechanism."""
        return self.mechanism.stateful

    def initial(self, key, K, V):
        """Returns the initial values of the wrapped mechanism."""
        return self.mechanism.initial(key, K, V)

    def heads(self, H):
        """Returns the constants per head of the wrapped mechanism."""
        return self.mechanism.heads(H)

    def cost(self, T, S, K, V, block=None):
        """Returns the cost of the wrapped mechanism."""
        return self.mechanism.cost(T, S, K, V, block)

    def with_rotary(self, position):
        """Returns this wrapper around the mechanism with rotary features, or None if there is none."""
        return None if (turned := self.mechanism.with_rotary(position)) is None else replace(self, mechanism=turned)

    def sized(self, length):
        """Returns this wrapper around the mechanism for `length` tokens."""
        return replace(self, mechanism=self.mechanism.sized(length))

    def fit(self, length):
        """Checks that the wrapped mechanism supports `length` positions."""
        self.mechanism.fit(length)

    def check(self, block):
        """Checks that the wrapped mechanism supports the positions of the block."""
        self.mechanism.check(block)
