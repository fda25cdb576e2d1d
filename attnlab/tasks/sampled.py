"""Which examples are looked at where not all are."""

import numpy as np


def sampled(count: int, limit: int | None = None) -> np.ndarray:
    """The rows of `limit` of so many examples, drawn by chance, always the same; all in their order where these are no
    fewer. Of a file that is sorted by class, the first would be of one class.

    >>> sampled(3).tolist(), sorted(sampled(100, 3).tolist())
    ([0, 1, 2], [20, 36, 82])
    """
    if limit is None or limit >= count:
        return np.arange(count)
    return np.random.Generator(np.random.PCG64(0)).permutation(count)[:limit]
