"""The sampling of examples for a limited evaluation."""

from collections.abc import Sequence

import numpy as np

from attnlab.data.rng import generator


def sampled(count: int, limit: int | None = None, groups: Sequence[str] | None = None) -> np.ndarray:
    """Returns the indices of `limit` examples out of `count`, drawn at random but always the same.

    If `limit` is None or at least `count`, all indices are returned in order. Sampling matters for a file that is
    sorted by class, in which the first examples would all be of one class.

    Args:
        count: The number of examples.
        limit: The number of examples to draw.
        groups: The group of each example. If given, equally many are drawn from every group, as far as it has enough.

    >>> sampled(3).tolist(), sorted(sampled(100, 3).tolist())
    ([0, 1, 2], [20, 36, 82])
    >>> int(sum(sampled(100, 6, ["a"] * 90 + ["b"] * 10) < 90))
    3
    """
    if limit is None or limit >= count:
        return np.arange(count)
    drawn = generator(0).permutation(count)
    if groups is not None:
        # Order by the rank within the group: the first drawn of each group, then the second of each, and so on.
        of, turn = np.asarray(groups)[drawn], np.empty(count, int)
        for group in np.unique(of):
            turn[of == group] = np.arange(np.sum(of == group))
        drawn = drawn[np.argsort(turn, kind="stable")]
    return drawn[:limit]
