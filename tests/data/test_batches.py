from collections import Counter
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from attnlab.data.batches import CYCLE, Buckets, pad, rounded

lengths = st.lists(st.tuples(st.integers(1, 40), st.integers(1, 20)), min_size=1, max_size=60)


def random_lengths(n=500, seed=0):
    random = np.random.default_rng(seed)
    return np.stack([random.integers(1, 40, n), random.integers(1, 20, n)], axis=1)


def epochs(buckets: Buckets, seed: int, size: int, steps: int) -> dict[int, list[int]]:
    """Returns the rows drawn from each bucket, in order."""
    drawn = {}
    for step in range(steps):
        drawn.setdefault(buckets.bucket(step), []).extend(buckets.batch(seed, step, size)[0].tolist())
    return drawn


@settings(max_examples=30)
@given(lengths, st.integers(1, 5), st.integers(1, 9), st.integers(0, 2**32 - 1))
def test_every_example_exactly_once_an_epoch(lengths, count, size, seed):
    buckets = Buckets(lengths, count)
    drawn = epochs(buckets, seed, size, steps=150)
    for b, rows in drawn.items():
        n = len(buckets.rows[b])
        whole = len(rows) // n
        for epoch in range(whole):
            assert sorted(rows[epoch * n : (epoch + 1) * n]) == buckets.rows[b].tolist()
        # The epoch that has begun repeats no row either.
        assert len(set(rows[whole * n :])) == len(rows) - whole * n


@settings(max_examples=30)
@given(lengths, st.integers(1, 5))
def test_every_example_is_in_one_bucket_and_fits_it(lengths, count):
    buckets = Buckets(lengths, count)
    assert sorted(np.concatenate(buckets.rows)) == list(range(len(lengths)))
    assert len(buckets.rows) <= count
    for rows, widths in zip(buckets.rows, buckets.widths, strict=True):
        assert len(rows)
        assert all(width % 4 == 0 for width in widths)
        assert (np.array(lengths)[rows] <= widths).all()


def test_shapes_are_a_function_of_the_step_alone():
    buckets = Buckets(random_lengths())
    for step in range(0, 400, 3):
        shapes = {buckets.batch(seed, step, 16)[1] for seed in range(5)}
        assert shapes == {buckets.widths[buckets.bucket(step)]}


def test_a_restart_gives_the_same_batches():
    before, after = Buckets(random_lengths()), Buckets(random_lengths())
    whole = [before.batch(3, step, 16)[0] for step in range(300)]
    for step in (299, 8, 151, 0):
        assert (after.batch(3, step, 16)[0] == whole[step]).all()


def test_seeds_epochs_and_buckets_differ():
    buckets = Buckets(np.full(100, 7), count=1)
    one, other = (epochs(buckets, seed, 10, 20)[0] for seed in (0, 1))
    assert len({tuple(rows) for rows in (one[:100], one[100:], other[:100], other[100:])}) == 4


def test_lengths_are_mixed_from_step_to_step():
    """A bucket has at most one step more in a row than its share of the examples requires."""
    buckets = Buckets(random_lengths(), count=3)
    share = np.array([len(rows) for rows in buckets.rows]) / 500
    chosen = np.array([buckets.bucket(step) for step in range(1600)])
    for b, part in enumerate(share):
        others = np.flatnonzero(chosen != b)
        assert np.diff(others).max() - 1 <= 1 + np.ceil(part / (1 - part))


def test_the_first_steps_have_every_width():
    buckets = Buckets(random_lengths(), count=4)
    assert [buckets.batch(0, step, 2)[1] for step in buckets.first_steps] == buckets.widths
    for b, first in enumerate(buckets.first_steps):
        assert b not in {buckets.bucket(step) for step in range(first)}


@pytest.mark.parametrize("steps", [10, 100, 777, CYCLE, 3 * CYCLE + 55])
def test_buckets_occur_in_proportion_to_what_they_hold(steps):
    buckets = Buckets(random_lengths(), count=4)
    share = np.array([len(rows) for rows in buckets.rows]) / 500
    counted = Counter(buckets.bucket(n) for n in range(steps))
    for b, part in enumerate(share):
        assert abs(counted[b] - part * steps) < 1 + 2 * steps / CYCLE


def test_the_rarest_bucket_occurs():
    lengths = [4] * 100_000 + [40]
    buckets = Buckets(lengths, count=2)
    assert {buckets.bucket(n) for n in range(CYCLE)} == {0, 1}
    # One example fills a whole batch by repetition.
    turn = next(n for n in range(CYCLE) if buckets.bucket(n) == 1)
    assert buckets.batch(0, turn, 5)[0].tolist() == [100_000] * 5


def test_the_schedule_continues_after_its_cycle():
    buckets = Buckets(random_lengths(), count=3)
    drawn = epochs(buckets, 0, 1, CYCLE + 2000)
    for b, rows in drawn.items():
        n = len(buckets.rows[b])
        for epoch in range(len(rows) // n):
            assert len(set(rows[epoch * n : (epoch + 1) * n])) == n


@pytest.mark.parametrize("count", [1, 2, 3, 4])
def test_bucket_edges_minimise_padding(count):
    table = random_lengths(200, seed=1)[:, 0]
    widths = rounded(table)
    distinct = np.unique(widths)

    def cells(edges):
        return sum(min(edge for edge in edges if edge >= width) for width in widths)

    best = min(cells((*inner, distinct[-1])) for inner in combinations(distinct[:-1], count - 1))
    buckets = Buckets(table, count)
    assert sum(len(rows) * width for rows, (width,) in zip(buckets.rows, buckets.widths, strict=True)) == best


def test_padding_is_the_empty_fraction_and_falls_with_more_buckets():
    assert Buckets([(4, 4), (4, 2)], count=1).padding == pytest.approx(2 / 16)
    waste = [Buckets(random_lengths(), count).padding for count in (1, 2, 3, 4)]
    assert waste == sorted(waste, reverse=True)
    assert waste[0] > 0.45
    assert waste[2] < 0.4


def test_more_buckets_than_widths_are_not_made():
    assert Buckets([1, 2, 3, 4, 9], count=5).widths == [(4,), (12,)]


@pytest.mark.parametrize(("lengths", "count"), [([], 3), ([3, -1], 3), ([3], 0)])
def test_invalid_batches_are_refused(lengths, count):
    with pytest.raises(ValueError, match="both must be at least 1"):
        Buckets(lengths, count)


def test_pad_appends_zeros():
    array = pad([[3, 4], [], [5]])
    assert array.dtype == np.int32
    assert array.tolist() == [[3, 4, 0, 0], [0, 0, 0, 0], [5, 0, 0, 0]]
    assert pad([[3]], width=2).tolist() == [[3, 0]]


def test_pad_cuts_nothing_off():
    with pytest.raises(ValueError, match="a sequence of length 3 does not fit in width=2"):
        pad([[3, 4, 5]], width=2)


def test_rounded_sizes():
    assert rounded(np.array([0, 1, 4, 5, 39])).tolist() == [4, 4, 4, 8, 40]
