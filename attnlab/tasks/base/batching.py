"""Splitting examples into batches of one size."""

import numpy as np

from attnlab.tasks.base.text_interface import Batch


def equal_batches(examples: Batch, max_size: int, **fill: float) -> list[Batch]:
    """Splits examples into batches of equal size, so that one compiled program serves all.

    Args:
        examples: Arrays [N, ...] by name.
        max_size: The largest batch size.
        **fill: The value that fills up the last batch, by array name. The default is 0. It must mark the rows as not
            scored.

    Returns:
        The batches, the last one filled up.
    """
    count = len(next(iter(examples.values())))
    size = min(max_size, count)
    missing = -count % size

    def filled(name: str, x: np.ndarray) -> np.ndarray:
        return np.concatenate([x, np.full((missing, *x.shape[1:]), fill.get(name, 0), x.dtype)]) if missing else x

    padded = {name: filled(name, x) for name, x in examples.items()}
    return [{name: x[n : n + size] for name, x in padded.items()} for n in range(0, count, size)]
