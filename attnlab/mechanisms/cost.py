"""The cost of a mechanism's call: operations, and bytes of inputs, outputs and state."""

from __future__ import annotations

from dataclasses import dataclass

from attnlab.documented import Documented


@dataclass(frozen=True)
class Cost(metaclass=Documented):
    """Cost of one call."""

    flops: int
    """Floating-point operations."""
    bytes: int
    """Bytes of the inputs and outputs."""
    state_bytes: int
    """Bytes of the decoding state."""


def moved(T: int, S: int, K: int, V: int) -> int:
    """Returns the bytes of reading q, k and v once and writing y once, in float32.

    Args:
        T: number of queries.
        S: number of keys.
        K: width of keys.
        V: width of values.
    """
    return 4 * (T * K + S * (K + V) + T * V)


def cached(S: int, K: int, V: int) -> int:
    """Returns the bytes of all keys and values, in float32.

    Args:
        S: number of keys.
        K: width of keys.
        V: width of values.
    """
    return 4 * S * (K + V)
