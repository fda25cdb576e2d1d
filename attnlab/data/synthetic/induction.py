"""Induction: a trigger occurs once, and again at the end. The task is to predict the token after the first trigger."""

import numpy as np

TRIGGER = 0  # the other tokens follow it


def draw(random: np.random.Generator, size: int, vocabulary: int, length: int) -> tuple[np.ndarray, np.ndarray]:
    """Draws sequences for induction.

    The trigger has the id 0. All other tokens are uniformly random. The trigger is at a uniformly random position that
    leaves room for the token after it, and at the last position.

    Args:
      random: the generator.
      size: number of sequences N.
      vocabulary: number of ids, including the trigger.
      length: number of tokens in a sequence.

    Returns:
      The tokens [N length] int32, and the token that followed the first trigger [N] int32.
    """
    tokens = random.integers(1, vocabulary, size=(size, length), dtype=np.int32)
    places = random.integers(length - 2, size=size)
    rows = np.arange(size)
    tokens[rows, places] = TRIGGER
    tokens[:, -1] = TRIGGER
    return tokens, tokens[rows, places + 1]
