import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from attnlab.tasks.base import metrics
from attnlab.tasks.base.metrics import distance, error_rates, exact_match

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
    """Returns the edit distance by the recurrence of Wagner and Fischer (1974), computed as a table."""
    table = np.zeros((len(a) + 1, len(b) + 1), int)
    table[:, 0], table[0] = range(len(a) + 1), range(len(b) + 1)
    for i in range(len(a)):
        for j in range(len(b)):
            changes = (table[i, j] + (a[i] != b[j]), table[i, j + 1] + 1, table[i + 1, j] + 1)
            table[i + 1, j + 1] = min(changes)
    return table[-1, -1]


@given(words, words)
def test_distance_equals_the_textbook_algorithm(a, b):
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


def test_strings_are_the_sequences_of_their_characters():
    assert exact_match(["ab", "a"], [["ab"], ["ab"]]) == {"exact_match": 0.5}
    assert exact_match([("a", "b")], [["ab"]]) == exact_match(["ab"], [[("a", "b")]]) == {"exact_match": 1.0}
    assert error_rates(["ab"], [["abc"]]) == {"word_error_rate": 1.0, "phoneme_error_rate": pytest.approx(1 / 3)}


def test_error_rates_by_hand():
    answers = [("HH", "AH"), ("T", "AH", "M"), ("K",)]
    references = [
        [("HH", "AH"), ("HH", "EH")],  # equals the first
        [("T", "AA", "M", "Z"), ("T", "AA", "M")],  # 1 of 3 by the second, not 2 of 4 by the first
        [("K", "AE", "T")],  # 2 of 3
    ]
    rates = error_rates(answers, references)
    assert rates["word_error_rate"] == pytest.approx(2 / 3)
    assert rates["phoneme_error_rate"] == pytest.approx((0 + 1 + 2) / (2 + 3 + 3))


def test_the_first_of_equally_near_references_is_used():
    assert error_rates([("a", "b")], [["a", "abc"]])["phoneme_error_rate"] == 1.0
    assert error_rates([("a", "b")], [["abc", "a"]])["phoneme_error_rate"] == pytest.approx(1 / 3)


def test_error_rate_of_a_long_answer_exceeds_1():
    assert error_rates([tuple("xxxx")], [["a"]])["phoneme_error_rate"] == 4.0


# Metrics of text.

REFERENCE = "the cat sat on the mat"


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (REFERENCE, 1.0),
        # 6 of 7 words match, 5 of 6 pairs, 4 of 5, 3 of 4: (3 / 7)^¼. A longer answer has no penalty.
        (REFERENCE + " today", (3 / 7) ** (1 / 4)),
        # All words match, but one word of six is missing: e^(1 − 6 / 5).
        ("the cat sat on the", math.exp(1 - 6 / 5)),
        # The clipped count is 2 of 7 words. Orders without a match count ½, ¼, ⅛ (exponential smoothing).
        ("the the the the the the the", (2 / 7 * (1 / 2) / 6 * (1 / 4) / 5 * (1 / 8) / 4) ** (1 / 4)),
        ("", 0.0),
    ],
)
def test_bleu_by_hand(answer, expected):
    assert metrics.bleu([answer], [[REFERENCE]]) == {"bleu": pytest.approx(expected)}
    lower = metrics.bleu_tokenised_lower([answer.upper()], [[REFERENCE.title()]])
    assert lower == {"bleu_tokenised_lower": pytest.approx(expected)}


def test_bleu_is_computed_over_the_corpus():
    # Matches of 1 … 4 words: 6 + 2, 5 + 1, 4, 3, of 6 + 4, 5 + 3, 4 + 2, 3 + 1.
    answers, references = [REFERENCE, "a dog and cats"], [[REFERENCE], ["a dog or birds"]]
    expected = (8 / 10 * 6 / 8 * 4 / 6 * 3 / 4) ** (1 / 4)
    assert metrics.bleu(answers, references)["bleu"] == pytest.approx(expected)


def test_bleu_of_raw_text_separates_punctuation_and_is_case_sensitive():
    answer, reference = "Hello, world! Good day.", "Hello , world ! Good day ."
    assert metrics.bleu([answer], [[reference]])["bleu"] == pytest.approx(1)
    assert metrics.bleu([answer.lower()], [[reference]])["bleu"] < 0.8
    assert metrics.bleu_tokenised_lower([answer], [[reference]])["bleu_tokenised_lower"] < 0.5
    assert metrics.bleu_tokenised_lower([reference.lower()], [[reference]])["bleu_tokenised_lower"] == pytest.approx(1)


def test_chrf_by_hand():
    # "ab" against "abc": 2 of 2 and 2 of 3 runs of one character match, and 1 of 1 and 1 of 2 runs of two characters.
    # Runs of three are not compared. Precision is 1, recall 7 / 12, and F₂ = 5 · 7/12 / (4 + 7/12).
    assert metrics.chrf(["a b"], [["abc"]]) == {"chrf": pytest.approx(7 / 11)}
    assert metrics.chrf(["abc"], [["abc"]]) == {"chrf": pytest.approx(1)}
    assert metrics.chrf(["xyz"], [["abc"]]) == {"chrf": 0.0}


VARIED = (
    ["The dog runs, and barks.", "two cats sleep", "Nothing at all is right", "a man in a hat"],
    [
        ["The dog runs and barks.", "A dog, barking, runs.", "The dog runs, barking."],
        ["Two cats sleep."],
        ["Everything here is wrong", "No word of it is right at all"],
        ["a man in an orange hat"],
    ],
)


def test_text_metrics_equal_sacrebleu():
    import sacrebleu

    answers, several = VARIED
    streams = [[r[n] if n < len(r) else None for r in several] for n in range(3)]
    first = [[r[0] for r in several]]
    for accepted, theirs in ((several, streams), ([r[:1] for r in several], first)):
        assert metrics.bleu(answers, accepted)["bleu"] == sacrebleu.corpus_bleu(answers, theirs).score / 100
        lower = sacrebleu.corpus_bleu(answers, theirs, tokenize="none", lowercase=True).score / 100
        assert metrics.bleu_tokenised_lower(answers, accepted)["bleu_tokenised_lower"] == lower
        assert metrics.chrf(answers, accepted)["chrf"] == sacrebleu.corpus_chrf(answers, theirs).score / 100
        assert 0.2 < lower < 0.9
    # More references raise the score here, which shows that the second and third are read.
    assert metrics.bleu(answers, several)["bleu"] > metrics.bleu(answers, [r[:1] for r in several])["bleu"]


def test_the_order_of_references_changes_nothing():
    answers, several = VARIED
    for measure in (metrics.bleu, metrics.bleu_tokenised_lower, metrics.chrf, metrics.word_edits):
        assert measure(answers, several) == measure(answers, [r[::-1] for r in several])


def test_word_edits_by_hand():
    # One of 5 words is changed. One of 3 words of the second, nearer reference is missing. Both words are missing.
    answers = ["a b c d x", "x  z", ""]
    references = [["a b c d e"], ["q r s t", "x y z"], ["a b"]]
    assert metrics.word_edits(answers, references) == {"word_edit_rate": pytest.approx((1 + 1 + 2) / (5 + 3 + 2))}


@pytest.mark.parametrize(
    "measure",
    [
        *(metrics.bleu, metrics.bleu_tokenised_lower, metrics.chrf, metrics.word_edits),
        *(metrics.exact_match, metrics.word_errors, metrics.error_rates),
    ],
)
@pytest.mark.parametrize(
    ("answers", "references"),
    [([], []), (["a"], []), (["a"], [["a"], ["b"]]), (["a", "b"], [["a"], []]), (["a b"], ["a b"])],
)
def test_each_answer_has_references(measure, answers, references):
    with pytest.raises(ValueError, match="references"):
        measure(answers, references)


def test_perplexity_of_a_uniform_guess_is_the_number_of_choices():
    assert metrics.perplexity(7 * math.log(50), 7) == pytest.approx(50)
    assert metrics.perplexity(0.0, 0) == 1
    assert metrics.perplexity(1e6, 1) == math.inf
    assert math.isnan(metrics.perplexity(math.nan, 3))


def test_buckets_of_length_hold_every_example_once():
    lengths = [0, 1, 5, 6, 10, 11, 99]
    assert metrics.by_length(lengths, (5, 10)) == {"0-5": [0, 1, 2], "6-10": [3, 4], "11+": [5, 6]}
    assert metrics.by_length(lengths, (10, 50)) == {"0-10": [0, 1, 2, 3, 4], "11-50": [5], "51+": [6]}
    assert metrics.by_length([7, 8], (5, 10, 20)) == {"6-10": [0, 1]}
    assert metrics.by_length([7, 8], ()) == {"0+": [0, 1]}


@pytest.mark.parametrize("edges", [(10, 5), (5, 5), (0, 5)])
def test_bucket_edges_must_ascend(edges):
    with pytest.raises(ValueError, match="must be increasing"):
        metrics.by_length([1], edges)
