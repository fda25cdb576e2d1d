"""Rotary positions inside a wrapper, for wrappers that change q and k before they can be rotated."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

from attnlab.mechanisms.wrapper import Wrapper
from attnlab.ops.feature.rotated import RotaryEncoding


@final
@dataclass(frozen=True)
class Rotated(Wrapper):
    """Rotates q and k by their positions before the wrapped mechanism."""

    position: RotaryEncoding
    """Rotary encoding. `position.rotate(q, k, i, j)` returns rotated queries and keys."""

    def attend_all(self, q, k, v, mask, *, i, j, bias=None, **extra):
        """Rotates queries and keys."""
        q, k = self.position.rotate(q, k, i, j)
        return self.mechanism.attend_all(q, k, v, mask, i=i, j=j, bias=bias, **extra)

    def attend_edges(self, q, k, v, edges, *, i, j, bias=None, **extra):
        """Rotates queries and keys."""
        q, k = self.position.rotate(q, k, i, j)
        return self.mechanism.attend_edges(q, k, v, edges, i=i, j=j, bias=bias, **extra)

    def attend_causal(self, q, k, v, block, *, bias=None, **extra):
        """Rotates queries and keys."""
        q, k = self.position.rotate(q, k, block.positions, block.positions)
        return self.mechanism.attend_causal(q, k, v, block, bias=bias, **extra)

    def update(self, memory, q, k, v, block, *, bias=None, **extra):
        """Rotates queries and keys."""
        q, k = self.position.rotate(q, k, block.positions, block.positions)
        return self.mechanism.update(memory, q, k, v, block, bias=bias, **extra)
