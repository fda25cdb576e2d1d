"""Base class of mechanisms that change something about another one."""

from __future__ import annotations

from dataclasses import dataclass, replace

from attnlab.mechanisms.checked import CheckedMechanism


@dataclass(frozen=True)
class Wrapper(CheckedMechanism):
    """Passes everything on to `mechanism`. A subclass overrides what it changes."""

    mechanism: CheckedMechanism
    """The wrapped mechanism."""

    @property
    def traits(self):  # pyright: ignore[reportIncompatibleVariableOverride]
        """Traits of the wrapped mechanism."""
        return self.mechanism.traits

    @property
    def tokens(self):
        """Extra inputs per key token of the wrapped mechanism."""
        return self.mechanism.tokens

    @property
    def queries(self):
        """Extra inputs per query token of the wrapped mechanism."""
        return self.mechanism.queries

    @property
    def learned(self):
        """Learned arrays of the wrapped mechanism."""
        return self.mechanism.learned

    def initial(self, key, K, V):
        """Returns the initial values of the wrapped mechanism."""
        return self.mechanism.initial(key, K, V)

    def heads(self, H):
        """Returns the constants per head of the wrapped mechanism."""
        return self.mechanism.heads(H)

    def cost(self, T, S, K, V, block=None):
        """Returns the cost of the wrapped mechanism."""
        return self.mechanism.cost(T, S, K, V, block)

    def with_length(self, length):
        """Returns this wrapper around the mechanism for `length` tokens."""
        return replace(self, mechanism=self.mechanism.with_length(length))

    def check_length(self, length):
        """Checks that the wrapped mechanism supports `length` positions."""
        self.mechanism.check_length(length)

    def with_rotary(self, position):
        """Returns this wrapper around the mechanism with rotary features, or None if there is none."""
        return None if (rotated := self.mechanism.with_rotary(position)) is None else replace(self, mechanism=rotated)

    def sees_all(self, length):
        """Returns what the wrapped mechanism returns."""
        return self.mechanism.sees_all(length)

    def check_positions(self, i):
        """Checks that the wrapped mechanism supports the positions."""
        self.mechanism.check_positions(i)

    def attend_all(self, q, k, v, mask, *, i, j, bias=None, **extra):
        """Returns the output of the wrapped mechanism."""
        return self.mechanism.attend_all(q, k, v, mask, i=i, j=j, bias=bias, **extra)

    def attend_edges(self, q, k, v, edges, *, i, j, bias=None, **extra):
        """Returns the output of the wrapped mechanism."""
        return self.mechanism.attend_edges(q, k, v, edges, i=i, j=j, bias=bias, **extra)

    def attend_causal(self, q, k, v, block, *, bias=None, **extra):
        """Returns the output of the wrapped mechanism."""
        return self.mechanism.attend_causal(q, k, v, block, bias=bias, **extra)

    def init_memory(self, length, K, V, dtype):
        """Returns the memory of the wrapped mechanism."""
        return self.mechanism.init_memory(length, K, V, dtype)

    def update(self, memory, q, k, v, block, *, bias=None, **extra):
        """Returns the output and memory of the wrapped mechanism."""
        return self.mechanism.update(memory, q, k, v, block, bias=bias, **extra)
