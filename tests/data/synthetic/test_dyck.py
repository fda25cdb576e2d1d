"""Checks Dyck words against a stack that is kept as a list."""

import numpy as np

from attnlab.data.rng import generator
from attnlab.data.synthetic import dyck


def test_brackets_are_nested_and_what_closes_them_is_on_the_stack():
    ids, closing, distance = dyck.draw(generator(5), 60, 80, kinds=4, depth=3)
    assert ids.dtype == closing.dtype == distance.dtype == np.int32
    depths = set()
    for row in range(60):
        stack = []
        for t, bracket in enumerate(ids[row].tolist()):
            if bracket < 4:
                stack.append((bracket, t))
            else:
                assert stack.pop()[0] == bracket - 4
            depths.add(len(stack))
            kind, opened = stack[-1] if stack else (dyck.NONE - 4, t)
            assert (closing[row, t], distance[row, t]) == (kind + 4, t - opened)
    assert depths == {0, 1, 2, 3}


def test_where_both_are_possible_half_of_the_brackets_open_and_kinds_are_uniform():
    ids, _, _ = dyck.draw(generator(0), 400, 200, kinds=5, depth=4)
    level = np.cumsum(np.where(ids < 5, 1, -1), axis=1)
    free = (level[:, :-1] > 0) & (level[:, :-1] < 4)
    assert abs((ids[:, 1:] < 5)[free].mean() - 0.5) < 0.01
    assert abs(np.bincount(ids[ids < 5]) / (ids < 5).sum() - 0.2).max() < 0.01


def test_with_a_depth_of_one_each_bracket_is_closed_at_once():
    ids, _, _ = dyck.draw(generator(1), 5, 10, kinds=3, depth=1)
    np.testing.assert_array_equal(ids[:, 1::2], ids[:, ::2] + 3)
