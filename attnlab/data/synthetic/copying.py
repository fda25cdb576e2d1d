"""Selective copying: tokens among noise, and then a marker for each of them, where they are to be repeated."""

from __future__ import annotations

import numpy as np

NOISE, MARKER = 0, 1  # the tokens to copy follow them


def draw(
    random: np.random.Generator, size: int, vocabulary: int, length: int, count: int
) -> tuple[np.ndarray, np.ndarray]:
    """Draws sequences for selective copying.

    Args:
      random: the generator.
      size: number of sequences N.
      vocabulary: number of ids, including NOISE and MARKER.
      length: number of tokens before the markers.
      count: number C of tokens to copy, at most `length`. They are uniform, and so are their positions.

    Returns:
      The sequences [N length+C] int32, which end in markers, and the tokens to copy in their order [N C] int32.
    """
    copied = random.integers(MARKER + 1, vocabulary, size=(size, count), dtype=np.int32)
    places = np.sort(np.argsort(random.random((size, length)), axis=1)[:, :count], axis=1)
    tokens = np.full((size, length + count), NOISE, np.int32)
    np.put_along_axis(tokens, places, copied, axis=1)
    tokens[:, length:] = MARKER
    return tokens, copied
