"""The order of batches: bucketed by length, a function of (seed, step) alone, with nothing to save."""

from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from attnlab.data.rng import generator

MULTIPLE = 4  # widths are rounded up to it: fewer shapes to compile for
CYCLE = 1024  # steps after which the schedule of buckets repeats


class Buckets:
    """Which examples are in which batch, and how wide it is.

    `lengths` [N] or [N, C] holds, for each example, the length of each of its C sequences. Examples go by
    their longest sequence into at most `count` buckets, whose edges are those that leave the least padding.
    `rows[b]` are the examples of bucket b, `widths[b]` its C widths, rounded up to a multiple of 4;
    `padding` is the share of padding in an epoch.

    The bucket of a step is a function of the step alone, so that several seeds share a batch's shape. Steps of all
    buckets alternate: each step goes to the bucket that is furthest behind its share of the examples, and after 1,024
    steps it all repeats. So no few steps in a row are of one length, which harms training. Inside a bucket, one epoch
    after the other, each a permutation by (seed, bucket, epoch), is cut into batches.

    Raises ValueError for no examples, for a length below 0 and for a count below 1.
    """

    def __init__(self, lengths: np.ndarray | Sequence, count: int = 3):
        table = np.asarray(lengths)
        table = table[:, None] if table.ndim == 1 else table
        if not len(table) or table.min() < 0 or count < 1:
            raise ValueError(f"{len(table)} examples, {count=} must be 1 or more, lengths 0 or more")
        longest = rounded(table.max(axis=1))
        edges = _edges(longest, count)
        # A bucket holds what is wider than the edge before it, up to its own.
        bucket = np.searchsorted(edges, longest)
        self.rows = [np.flatnonzero(bucket == b).astype(np.int32) for b in range(len(edges))]
        self.widths = [tuple(int(w) for w in rounded(table[rows].max(axis=0))) for rows in self.rows]
        self._schedule = _schedule(np.array([len(rows) for rows in self.rows]))
        # How often each bucket came before each step of the cycle [CYCLE + 1, buckets].
        once = np.eye(len(edges), dtype=np.int64)[self._schedule]
        self._before = np.concatenate([np.zeros((1, len(edges)), np.int64), once.cumsum(axis=0)])
        cells = sum(len(rows) * sum(widths) for rows, widths in zip(self.rows, self.widths, strict=True))
        self.padding = float(1 - table.sum() / cells)

    def bucket(self, step: int) -> int:
        """The bucket of a step."""
        return int(self._schedule[step % CYCLE])

    @property
    def first_steps(self) -> tuple[int, ...]:
        """The first step of each bucket."""
        return tuple(int(np.argmax(self._schedule == b)) for b in range(len(self.rows)))

    def batch(self, seed: int, step: int, size: int) -> tuple[np.ndarray, tuple[int, ...]]:
        """The rows [size] of a step's examples, and the widths [C] to pad them to."""
        b = self.bucket(step)
        rows = self.rows[b]
        first = self._visits(step, b) * size
        drawn = np.empty(size, np.int32)
        done = 0
        while done < size:
            epoch, place = divmod(first + done, len(rows))
            part = rows[_permutation(len(rows), seed, b, epoch)[place : place + size - done]]
            drawn[done : done + len(part)] = part
            done += len(part)
        return drawn, self.widths[b]

    def _visits(self, step: int, b: int) -> int:
        """How many steps before this one were of bucket b, the bucket of this one."""
        cycles, place = divmod(step, CYCLE)
        return int(cycles * self._before[-1, b] + self._before[place, b])


def rounded(lengths: np.ndarray | int) -> np.ndarray:
    """Lengths rounded up to a multiple of 4, and at least 4."""
    return np.asarray(np.maximum(-(-np.asarray(lengths) // MULTIPLE) * MULTIPLE, MULTIPLE))


def pad(sequences: Sequence[Sequence[int]], width: int | None = None) -> np.ndarray:
    """Ids as one array [N, width] int32, zero (PAD) behind each sequence; width: the longest, rounded up.

    Raises ValueError where a sequence is longer than the width.
    """
    lengths = np.array([len(sequence) for sequence in sequences], np.int64)
    longest = int(lengths.max(initial=0))
    width = int(rounded(longest)) if width is None else width
    if longest > width:
        raise ValueError(f"a sequence of {longest} does not fit {width=}")
    array = np.zeros((len(sequences), width), np.int32)
    flat = (n for sequence in sequences for n in sequence)
    array[np.arange(width) < lengths[:, None]] = np.fromiter(flat, np.int32, lengths.sum())
    return array


def _edges(longest: np.ndarray, count: int) -> np.ndarray:
    """At most `count` ascending widths, the last the greatest, with the least padded total.

    By dynamic programming over the widths that occur: the best k buckets for the narrowest j widths are the
    best k − 1 for fewer, and one more.
    """
    widths, sizes = np.unique(longest, return_counts=True)
    held = np.concatenate([[0], sizes.cumsum()])
    # cells[i, j]: what one bucket for the widths i … j takes.
    cells = widths * (held[None, 1:] - held[:-1, None]).astype(float)
    cells[np.tri(len(widths), k=-1, dtype=bool)] = np.inf
    best, starts = cells[0], []
    for _ in range(min(count, len(widths)) - 1):
        total = np.concatenate([[np.inf], best[:-1]])[:, None] + cells
        best = total.min(axis=0)
        starts.append(total.argmin(axis=0))
    ends = [len(widths) - 1]
    for start in reversed(starts):
        ends.append(start[ends[-1]] - 1)
    return widths[ends[::-1]]


def _schedule(sizes: np.ndarray) -> np.ndarray:
    """The bucket of each step of a cycle [CYCLE]: always the one furthest behind its share."""
    share = np.maximum(sizes / sizes.sum(), 1 / CYCLE)
    share /= share.sum()
    taken = np.zeros(len(sizes))
    order = np.empty(CYCLE, np.int64)
    for n in range(CYCLE):
        order[n] = np.argmax(share * (n + 1) - taken)
        taken[order[n]] += 1
    return order


# A cache, not a state: the same arguments give the same permutation, and an epoch asks for it many times.
@lru_cache(maxsize=64)
def _permutation(size: int, seed: int, bucket: int, epoch: int) -> np.ndarray:
    order = generator(seed, bucket, epoch).permutation(size).astype(np.int32)
    order.setflags(write=False)
    return order
