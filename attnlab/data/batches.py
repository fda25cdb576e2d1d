"""The order of batches: bucketed by length, and a function of (seed, step) only, so that no state has to be saved."""

from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from attnlab.data.rng import generator

MULTIPLE = 4  # widths are rounded up to a multiple of this, so that fewer shapes have to be compiled
CYCLE = 1024  # number of steps after which the schedule of buckets repeats


class Buckets:
    """Assigns examples to buckets of similar length, and gives the batch of each step.

    Each example goes to a bucket by the length of its longest sequence. The bucket edges are those that leave the
    least padding. The examples of a bucket are permuted once per epoch by (seed, bucket, epoch), and consecutive
    epochs are cut into batches.

    The bucket of a step depends on the step only, so that the batches of several seeds have one shape. Each step goes
    to the bucket that is furthest below its share of the examples. Buckets therefore alternate, because training
    suffers if many steps in a row have one length. The schedule repeats after 1,024 steps.

    Args:
      lengths: integers [N] or [N, C]: the length of each of the C sequences of each example.
      count: the largest number of buckets.

    Attributes:
      rows: for each bucket, the indices of its examples, int32.
      widths: for each bucket, the C widths to pad to, each rounded up to a multiple of 4.
      padding: the share of padding in an epoch, 0 … 1.

    Raises:
      ValueError: if there are no examples, a length is below 0, or `count` is below 1.
    """

    def __init__(self, lengths: np.ndarray | Sequence, count: int = 3):
        table = np.asarray(lengths)
        table = table[:, None] if table.ndim == 1 else table
        if not len(table) or table.min() < 0 or count < 1:
            raise ValueError(
                f"{len(table)} examples and {count=}: both must be at least 1, and no length may be negative"
            )
        longest = rounded(table.max(axis=1))
        edges = _edges(longest, count)
        # A bucket holds the lengths above the previous edge, up to and including its own edge.
        bucket = np.searchsorted(edges, longest)
        self.rows = [np.flatnonzero(bucket == b).astype(np.int32) for b in range(len(edges))]
        self.widths = [tuple(int(w) for w in rounded(table[rows].max(axis=0))) for rows in self.rows]
        self._schedule = _schedule(np.array([len(rows) for rows in self.rows]))
        # How often each bucket occurs before each step of the cycle [CYCLE + 1, buckets].
        once = np.eye(len(edges), dtype=np.int64)[self._schedule]
        self._before = np.concatenate([np.zeros((1, len(edges)), np.int64), once.cumsum(axis=0)])
        cells = sum(len(rows) * sum(widths) for rows, widths in zip(self.rows, self.widths, strict=True))
        self.padding = float(1 - table.sum() / cells)

    def bucket(self, step: int) -> int:
        """Returns the index of the bucket from which a step takes its batch."""
        return int(self._schedule[step % CYCLE])

    @property
    def first_steps(self) -> tuple[int, ...]:
        """The first step of each bucket."""
        return tuple(int(np.argmax(self._schedule == b)) for b in range(len(self.rows)))

    def batch(self, seed: int, step: int, size: int) -> tuple[np.ndarray, tuple[int, ...]]:
        """Returns the batch of a step.

        Args:
          seed: seed of the order of examples.
          step: index of the step, from 0.
          size: number of examples in a batch.

        Returns:
          The indices of the examples [size] int32, and the C widths to pad their sequences to.
        """
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
        """Returns how many steps before this one used bucket b."""
        cycles, place = divmod(step, CYCLE)
        return int(cycles * self._before[-1, b] + self._before[place, b])


def rounded(lengths: np.ndarray | int) -> np.ndarray:
    """Rounds lengths up to a multiple of 4, and to at least 4."""
    return np.asarray(np.maximum(-(-np.asarray(lengths) // MULTIPLE) * MULTIPLE, MULTIPLE))


def pad(sequences: Sequence[Sequence[int]], width: int | None = None) -> np.ndarray:
    """Stacks sequences of ids into one array, with zeros (PAD) after each sequence.

    Args:
      sequences: N sequences of ids.
      width: length of a row. The default is the longest length, rounded up to a multiple of 4.

    Returns:
      An array [N, width] int32.

    Raises:
      ValueError: if a sequence is longer than `width`.
    """
    lengths = np.array([len(sequence) for sequence in sequences], np.int64)
    longest = int(lengths.max(initial=0))
    width = int(rounded(longest)) if width is None else width
    if longest > width:
        raise ValueError(f"a sequence of length {longest} does not fit in {width=}")
    array = np.zeros((len(sequences), width), np.int32)
    flat = (n for sequence in sequences for n in sequence)
    # One assignment through a mask replaces a loop over rows.
    array[np.arange(width) < lengths[:, None]] = np.fromiter(flat, np.int32, lengths.sum())
    return array


def _edges(longest: np.ndarray, count: int) -> np.ndarray:
    """Returns at most `count` ascending widths that give the least padded total; the last one is the greatest width.

    This is dynamic programming over the widths that occur. The best k buckets for the j smallest widths are the best
    k − 1 buckets for fewer widths, and one more bucket.
    """
    widths, sizes = np.unique(longest, return_counts=True)
    held = np.concatenate([[0], sizes.cumsum()])
    # cells[i, j]: the padded total of one bucket for the widths i … j.
    cells = widths * (held[None, 1:] - held[:-1, None]).astype(float)
    cells[np.tri(len(widths), k=-1, dtype=bool)] = np.inf
    # best[j]: the least padded total of the widths 0 … j in as many buckets as there are so far.
    best, starts = cells[0], []
    for _ in range(min(count, len(widths)) - 1):
        total = np.concatenate([[np.inf], best[:-1]])[:, None] + cells
        best = total.min(axis=0)
        starts.append(total.argmin(axis=0))
    # Trace the choices back from the greatest width.
    ends = [len(widths) - 1]
    for start in reversed(starts):
        ends.append(start[ends[-1]] - 1)
    return widths[ends[::-1]]


def _schedule(sizes: np.ndarray) -> np.ndarray:
    """Returns the bucket of each step of a cycle [CYCLE]: always the one furthest below its share."""
    # Every bucket, however small, occurs at least about once per cycle.
    share = np.maximum(sizes / sizes.sum(), 1 / CYCLE)
    share /= share.sum()
    taken = np.zeros(len(sizes))
    order = np.empty(CYCLE, np.int64)
    for n in range(CYCLE):
        order[n] = np.argmax(share * (n + 1) - taken)
        taken[order[n]] += 1
    return order


# Cached because every batch of an epoch needs the permutation. The cache never changes a result.
@lru_cache(maxsize=64)
def _permutation(size: int, seed: int, bucket: int, epoch: int) -> np.ndarray:
    """Returns the read-only order of a bucket's examples in an epoch [size] int32."""
    order = generator(seed, bucket, epoch).permutation(size).astype(np.int32)
    order.setflags(write=False)
    return order
