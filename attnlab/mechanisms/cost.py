"""What a call of a mechanism costs: operations, and bytes as its inputs, outputs and state have them."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Cost:
    """What a call costs: floating-point operations, bytes of inputs and outputs, bytes of decoding state."""

    flops: int
    bytes: int
    state_bytes: int


def moved(T: int, S: int, K: int, V: int) -> int:
    """Bytes of q, k and v read and of y written once, float32."""
    return 4 * (T * K + S * (K + V) + T * V)


def cached(S: int, K: int, V: int) -> int:
    """Bytes of all keys and values, float32."""
    return 4 * S * (K + V)
