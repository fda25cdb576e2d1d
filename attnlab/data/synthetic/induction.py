"""Tokens in which a trigger stands once, and again at the end: what came after it?"""

import numpy as np

TRIGGER = 0  # the other tokens follow it


def draw(random: np.random.Generator, size: int, vocabulary: int, length: int) -> tuple[np.ndarray, np.ndarray]:
    """Tokens [N length] and what is to come after the last of them [N]; int32.

    Ids are 0 (the trigger) … `vocabulary` − 1, the others drawn evenly; the trigger stands at a place drawn evenly
    among those that leave room for the token after it, and at the end.
    """
    tokens = random.integers(1, vocabulary, size=(size, length), dtype=np.int32)
    places = random.integers(length - 2, size=size)
    rows = np.arange(size)
    tokens[rows, places] = TRIGGER
    tokens[:, -1] = TRIGGER
    return tokens, tokens[rows, places + 1]
