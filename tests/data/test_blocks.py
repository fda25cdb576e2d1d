import numpy as np
import pytest

from attnlab.data.blocks import Blocks

IDS = np.arange(1000, 1103, dtype=np.int32)


def epoch(blocks, seed, n, size=3):
    rows = np.concatenate([blocks.batch(seed, step, size) for step in range(2 * blocks.count)])
    return rows[n * blocks.count : (n + 1) * blocks.count]


def test_a_block_is_a_slice_of_the_sequence_with_the_next_symbols():
    rows = Blocks(IDS, 8).batch(0, 5, 4)
    assert rows.shape == (4, 9)
    assert rows.dtype == np.int32
    np.testing.assert_array_equal(np.diff(rows, axis=1), 1)


def test_an_epoch_has_each_id_once_and_the_next_has_other_offsets():
    blocks = Blocks(IDS, 8)
    assert blocks.count == (103 - 8) // 8
    first, second = (epoch(blocks, 3, n) for n in (0, 1))
    for rows in (first, second):
        seen = np.sort(rows[:, :-1].ravel())
        np.testing.assert_array_equal(np.diff(seen), 1)
    assert first[:, 0].min() % 8 != second[:, 0].min() % 8
    assert not np.array_equal(np.argsort(first[:, 0]), np.arange(len(first)))


def test_batches_are_a_function_of_seed_and_step():
    blocks, again = Blocks(IDS, 8), Blocks(IDS, 8)
    again.batch(1, 40, 7)
    np.testing.assert_array_equal(blocks.batch(1, 2, 6), again.batch(1, 2, 6))
    np.testing.assert_array_equal(blocks.batch(1, 1, 6), np.concatenate([blocks.batch(1, n, 3) for n in (2, 3)]))
    assert not np.array_equal(blocks.batch(1, 2, 6), blocks.batch(2, 2, 6))


@pytest.mark.parametrize("count", [9, 10, 15, 16, 17])
def test_the_shortest_sequences_are_read_completely(count):
    blocks = Blocks(IDS[:count], 8)
    rows = np.concatenate([blocks.batch(seed, 0, 8) for seed in range(20)])
    assert rows.min() == IDS[0]
    assert rows.max() == IDS[count - 1]


@pytest.mark.parametrize(("count", "length"), [(8, 8), (0, 1), (5, 0)])
def test_too_few_ids_are_refused(count, length):
    with pytest.raises(ValueError, match=rf"^length={length} must be at least 1 and below the number of ids, {count}$"):
        Blocks(IDS[:count], length)
