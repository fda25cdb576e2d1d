import pytest

from attnlab.lab.quantity import NONE, count, duration, large, measure, number, span


@pytest.mark.parametrize("value", [None, "1", True, float("nan"), float("inf"), 1e300, 10**400, [1]])
def test_what_is_no_finite_number(value):
    assert number(value) is None
    shown = (measure("loss", value), count(value), large(value, "B"), duration(value))
    assert set(shown) == {NONE}


@pytest.mark.parametrize(
    ("shown", "words"),
    [
        (measure("exact_match", 1.0), "100.0%"),
        (measure("exact_match", 0.99996), "100.00%"),
        (measure("word_error_rate", 0.0), "0.0%"),
        (measure("bleu_tokenised_lower", 0.4102), "41.0"),
        (measure("ap50.RBC", 0.9), "90.0"),
        (measure("apples", 0.9), "0.9"),
        (span("bleu", 0.3, 0.35), "30.0–35.0"),
        (measure("loss", -0.5, sign=True), "−0.5"),
        (measure("exact_match", 0.021, sign=True), "+2.1"),
        (span("exact_match", -0.1, 0.5), "0–50.0%"),
        (span("loss", -0.1, 0.5), "−0.1–0.5"),
        (large(999.7e3, "B"), "1000 kB"),
        (large(0, "B"), "0 B"),
        (duration(0.9996), "1000 ms"),
        (duration(59.99), "60 s"),
        (duration(3661), "1 h 1 min"),
        (count(1e6), "1,000,000"),
    ],
)
def test_numbers_as_they_are_read(shown, words):
    assert shown == words
