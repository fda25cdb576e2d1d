"""Which examples are looked at where not all are."""

from collections.abc import Sequence

import numpy as np

from attnlab.data.rng import generator


def sampled(count: int, limit: int | None = None, groups: Sequence[str] | None = None) -> np.ndarray:
    """The rows of `limit` of so many examples, drawn by chance, always the same; all in their order where these are no
    fewer. Of a file that is sorted by class, the first would be of one class.

    Where `groups` says of which each is, as many are taken of every group, as far as it goes.

    >>> sampled(3).tolist(), sorted(sampled(100, 3).tolist())
    ([0, 1, 2], [20, 36, 82])
    >>> int(sum(sampled(100, 6, ["a"] * 90 + ["b"] * 10) < 90))
    3
    """
    if limit is None or limit >= count:
        return np.arange(count)
    drawn = generator(0).permutation(count)
    if groups is not None:
        # The first that was drawn of each group, then the second of each, and so on.
        of, turn = np.asarray(groups)[drawn], np.empty(count, int)
        for group in np.unique(of):
            turn[of == group] = np.arange(np.sum(of == group))
        drawn = drawn[np.argsort(turn, kind="stable")]
    return drawn[:limit]
