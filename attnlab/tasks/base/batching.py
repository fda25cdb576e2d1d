"""Examples in batches of one size."""

from typing import Any

import numpy as np

from attnlab.tasks.base.task import Batch


def even(whole: Batch, most: int, **blank: Any) -> list[Batch]:
    """Examples [N …] in batches of up to `most` and one size, so that one program serves; the last one filled up.

    With zeros, or with what `blank` says by name: so that they ask nothing.
    """
    count = len(next(iter(whole.values())))
    size = min(most, count)
    missing = -count % size

    def filled(name: str, x: np.ndarray) -> np.ndarray:
        return np.concatenate([x, np.full((missing, *x.shape[1:]), blank.get(name, 0), x.dtype)]) if missing else x

    padded = {name: filled(name, x) for name, x in whole.items()}
    return [{name: x[n : n + size] for name, x in padded.items()} for n in range(0, count, size)]
