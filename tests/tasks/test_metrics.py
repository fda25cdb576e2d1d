import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from attnlab.tasks.metrics import distance, error_rates, exact_match

words = st.text("abc", max_size=7)


@pytest.mark.parametrize(
    ("a", "b", "errors"),
    [
        ("", "", 0),
        ("", "abc", 3),
        ("abc", "", 3),
        ("abc", "abc", 0),
        ("abc", "abd", 1),
        ("abc", "ac", 1),
        ("ac", "abc", 1),
        ("abc", "cba", 2),
        ("kitten", "sitting", 3),
        ("intention", "execution", 5),
        (("HH", "AH", "L", "OW"), ("HH", "EH", "L", "OW"), 1),
    ],
)
def test_distance_by_hand(a, b, errors):
    assert distance(a, b) == errors


def textbook(a, b):
    """The recurrence of Wagner and Fischer (1974) as a table."""
    table = np.zeros((len(a) + 1, len(b) + 1), int)
    table[:, 0], table[0] = range(len(a) + 1), range(len(b) + 1)
    for i in range(len(a)):
        for j in range(len(b)):
            changes = (table[i, j] + (a[i] != b[j]), table[i, j + 1] + 1, table[i + 1, j] + 1)
            table[i + 1, j + 1] = min(changes)
    return table[-1, -1]


@given(words, words)
def test_distance_is_the_textbooks(a, b):
    assert distance(a, b) == textbook(a, b) == distance(b, a)


@given(words, words, words)
def test_distance_is_a_metric(a, b, c):
    assert distance(a, c) <= distance(a, b) + distance(b, c)
    assert (distance(a, b) == 0) == (a == b)
    assert abs(len(a) - len(b)) <= distance(a, b) <= max(len(a), len(b))


def test_exact_match_by_hand():
    answers = [("a", "b"), ("a",), (), ("b",)]
    references = [["ab"], ["b", "a"], ["a"], [("b", "b")]]
    assert exact_match(answers, references) == {"exact_match": 0.5}


def test_error_rates_by_hand():
    answers = [("HH", "AH"), ("T", "AH", "M"), ("K",)]
    references = [
        [("HH", "AH"), ("HH", "EH")],  # right by the first
        [("T", "AA", "M", "Z"), ("T", "AA", "M")],  # 1 of 3 by the second, not 2 of 4 by the first
        [("K", "AE", "T")],  # 2 of 3
    ]
    rates = error_rates(answers, references)
    assert rates["word_error_rate"] == pytest.approx(2 / 3)
    assert rates["phoneme_error_rate"] == pytest.approx((0 + 1 + 2) / (2 + 3 + 3))


def test_the_first_of_equally_near_references_is_the_measure():
    assert error_rates([("a", "b")], [["a", "abc"]])["phoneme_error_rate"] == 1.0
    assert error_rates([("a", "b")], [["abc", "a"]])["phoneme_error_rate"] == pytest.approx(1 / 3)


def test_an_answer_that_runs_on_errs_more_than_once_a_phone():
    assert error_rates([tuple("xxxx")], [["a"]])["phoneme_error_rate"] == 4.0


def test_twelve_thousand_words_are_measured_in_a_moment():
    import time

    random = np.random.default_rng(0)
    words = [tuple(random.choice(list("ABCDEFGH"), n).tolist()) for n in random.integers(3, 12, 24_000)]
    answers, references = words[::2], [[word] for word in words[1::2]]
    began = time.process_time()
    error_rates(answers, references)
    assert time.process_time() - began < 3
