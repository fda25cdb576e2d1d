from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from attnlab.data.synthetic import listops
from attnlab.data.synthetic.listops import CLOSE, END, OPERATORS, WORDS, evaluate


def generator(seed=0):
    return np.random.Generator(np.random.PCG64(seed))


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("7", 7),
        ("[MIN 4 2 9 ]", 2),
        ("[MAX 2 9 [MIN 4 7 ] 0 ]", 9),  # the first example of the paper's figure 1
        ("[MED 5 1 3 ]", 3),
        ("[MED 9 0 4 7 ]", 5),  # 5.5, rounded down
        ("[MED 3 4 ]", 3),
        ("[MED 0 0 9 9 ]", 4),  # 4.5
        ("[SM 5 6 9 ]", 0),
        ("[SM 1 1 ]", 2),
        ("[MAX 4 3 [MIN 2 3 ] 1 0 [MED 1 5 8 9 2 ] ]", 5),  # Long Range Arena, section 2.2.1
        ("[SM [SM 9 9 ] [MED 8 [MAX 1 7 ] 2 ] [MIN 6 ] ]", 1),  # 8 + 7 + 6
    ],
)
def test_values_of_expressions(text, value):
    assert evaluate(text.split()) == value


@given(st.lists(st.integers(0, 9), min_size=1, max_size=10))
def test_operators_equal_numpy(values):
    told = {
        "[MIN": np.min(values), "[MAX": np.max(values), "[SM": np.sum(values) % 10, "[MED": int(np.median(values)),
    }  # fmt: skip
    for operator, expected in told.items():
        assert evaluate([operator, *map(str, values), END]) == expected


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "is empty"),
        ("[MAX 1 2", "incomplete; number of unclosed lists: 1"),
        ("[MAX ]", r"'\]' at position 2 closes an empty list"),
        ("]", r"'\]' at position 1 closes no list"),
        ("[MAX 1 ] 2", "ends at position 3, but there are 4 words"),
        ("3 4", "ends at position 1, but there are 2 words"),
        ("[ADD 1 2 ]", r"'\[ADD' at position 1 is not a digit"),
        ("[MAX 1 12 ]", "'12' at position 3 is not a digit"),
        ("[MAX 1 ² ]", "'²' at position 3 is not a digit"),
    ],
)
def test_an_invalid_expression_is_refused_with_its_position(text, words):
    with pytest.raises(ValueError, match=words):
        evaluate(text.split())


def depth(words):
    """Returns the largest number of lists that are open at once."""
    return int(np.cumsum([(word in OPERATORS) - (word == END) for word in words]).max())


def arguments(words):
    """Returns the number of arguments of each list."""
    counts, lists = [], []
    for word in words:
        if word == END:
            counts.append(lists.pop())
        if word != END and lists:
            lists[-1] += 1
        if word in OPERATORS:
            lists.append(0)
    return counts


@pytest.mark.parametrize(
    ("lengths", "levels", "most"), [((16, 64), 10, 10), ((4, 300), 3, 5), ((4, 12), 2, 10), ((13, 13), 6, 2)]
)
def test_lengths_levels_and_arguments_are_as_requested(lengths, levels, most):
    ids, counts, values = listops.draw(generator(), 60, lengths, levels, most)
    assert ids.shape == (60, lengths[1])
    assert ids.dtype == values.dtype == np.int32
    for row, count, value in zip(ids, counts, values, strict=True):
        words = [WORDS[n] for n in row[:count]]
        assert lengths[0] <= count <= lengths[1]
        assert (row[:count] > 0).all()
        assert not row[count:].any()
        assert row[count - 1] == CLOSE
        assert depth(words) <= levels - 1
        assert set(arguments(words)) <= set(range(2, most + 1))
        assert evaluate(words) == value


def published(random, level, levels, most):
    """Draws the words of an expression by recursion, as the grammar is published."""
    if level == levels or random.random() > 0.25:
        return [str(random.integers(10))]
    words = [OPERATORS[random.integers(4)]]
    for _ in range(random.integers(2, most, endpoint=True)):
        words += published(random, level + 1, levels, most)
    return [*words, END]


def test_it_is_the_published_grammar():
    """Checks that lengths, depths, operators and answers are distributed as the recursion draws them."""
    random, size, bounds = generator(1), 1500, (16, 64)
    kept = []
    while len(kept) < size:
        words = published(random, 1, 6, 5)
        if bounds[0] <= len(words) <= bounds[1]:
            kept.append(words)
    ids, counts, values = listops.draw(generator(2), size, bounds, 6, 5)
    drawn = [[WORDS[n] for n in row[:count]] for row, count in zip(ids, counts, strict=True)]
    for measure in (
        len,
        depth,
        lambda words: words[0],
        lambda words: words.count("[SM"),
        lambda words: words.count("7"),
    ):
        one, other = Counter(map(measure, kept)), Counter(map(measure, drawn))
        for value in one | other:
            # Five standard deviations of a difference of two counts.
            assert abs(one[value] - other[value]) < 5 * max(4, one[value] + other[value]) ** 0.5
    shares = np.bincount(values, minlength=10) / size
    assert shares.min() > 0.05
    assert shares.max() < 0.2


def test_expressions_are_a_function_of_the_seed():
    one, same, other = (listops.draw(generator(seed), 4, (8, 40), 10, 10)[0] for seed in (3, 3, 4))
    np.testing.assert_array_equal(one, same)
    assert (one != other).any()


def test_impossible_lengths_are_refused(monkeypatch):
    monkeypatch.setattr(listops, "TRIES", 200)
    with pytest.raises(ValueError, match="none of 200 expressions with depth=9 and arguments=2 has 50 to 50 words"):
        listops.draw(generator(), 1, (50, 50), 9, 2)
