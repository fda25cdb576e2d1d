import numpy as np
import pytest

from attnlab.data.text.masking import Masking
from attnlab.data.text.vocabulary import PAD

MASKING = Masking(mask=204, first=3, end=203)  # 203 is unknown
rng = np.random.default_rng(0)


def sentences(count, width):
    """Returns sentences of words of all ids, with the unknown one, of any length up to the width, padded with PAD."""
    source = rng.integers(3, 204, (count, width)).astype(np.int32)
    return np.where(np.arange(width) < rng.integers(0, width + 1, (count, 1)), source, PAD).astype(np.int32)


def test_unselected_words_are_unchanged_and_answers_are_the_original_words():
    source = sentences(500, 24)
    before = source.copy()
    found = MASKING.hide(source, rng)
    np.testing.assert_array_equal(source, before)
    assert {name: (x.shape, str(x.dtype)) for name, x in found.items()} == {
        "hidden": ((500, 24), "int32"), "places": ((500, 4), "int32"), "answers": ((500, 4), "int32"),
    }  # fmt: skip
    for row, hidden, places, answers in zip(source, found["hidden"], found["places"], found["answers"], strict=True):
        asked = answers != PAD
        words = (row >= 3) & (row < 203)
        assert asked.sum() == MASKING.asks(words.sum())
        assert len(set(places[asked])) == asked.sum()
        np.testing.assert_array_equal(row[places[asked]], answers[asked])
        assert words[places[asked]].all()
        assert (places[~asked] == 0).all()
        elsewhere = np.ones(len(row), bool)
        elsewhere[places[asked]] = False
        np.testing.assert_array_equal(hidden[elsewhere], row[elsewhere])


def test_three_of_twenty_words_are_selected_80_percent_masked_10_replaced_10_kept():
    source = rng.integers(3, 203, (4000, 20)).astype(np.int32)
    found = MASKING.hide(source, rng)
    stands = np.take_along_axis(found["hidden"], found["places"], axis=1)
    masked, seen = stands == 204, stands == found["answers"]
    # 12,000 draws have standard errors of .0037 and .0027. One swap in 200 draws the same word.
    assert abs(masked.mean() - 0.8) < 0.015
    assert abs(seen.mean() - 0.1005) < 0.011
    swapped = stands[~masked & ~seen]
    assert swapped.min() >= 3
    assert swapped.max() < 203
    assert len(set(swapped.tolist())) > 190
    # All positions are equally likely: 600 of each, within 5 standard errors.
    assert np.abs(np.bincount(found["places"].ravel(), minlength=20) - 600).max() < 120


def test_padding_and_marks_are_never_selected():
    source = np.array([[203, 203, 0, 0], [203, 7, 0, 0]], np.int32)
    for _ in range(20):
        found = MASKING.hide(source, rng)
        np.testing.assert_array_equal(found["answers"], [[0], [7]])
        np.testing.assert_array_equal(found["places"], [[0], [1]])
        np.testing.assert_array_equal(found["hidden"][0], source[0])


@pytest.mark.parametrize("wrong", [{"share": 0.0}, {"share": 1.5}, {"end": 3}])
def test_a_fraction_that_masks_nothing_is_refused(wrong):
    with pytest.raises(ValueError, match=r"share=.* must be above 0"):
        Masking(**{"mask": 9, "first": 3, "end": 8} | wrong)
