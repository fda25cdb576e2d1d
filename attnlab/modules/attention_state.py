"""The decoding state of an attention layer."""

from __future__ import annotations

from dataclasses import dataclass

from jaxtyping import Array, Float

from attnlab.mechanisms.base import State
from attnlab.ops.tree import pytree


@pytree
@dataclass(frozen=True)
class AttentionState:
    """The decoding state of an attention layer."""

    heads: State
    """The mechanism's state with a leading axis of key heads."""
    rows: Float[Array, "N C"] | None
    """The last inputs of the short convolution, or None without one."""
