import pytest

from attnlab.console.format import NONE, count, duration, large, measure, number, signed, span


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
        (measure("apples", 0.9), "0.900"),
        (span("bleu", 0.3, 0.35), "30.0–35.0"),
        (measure("loss", -0.5), "−0.500"),
        (signed("loss", -0.5), "−0.500"),
        (signed("exact_match", 0.021), "+2.1"),
        (signed("exact_match", -0.9), "−90.0"),
        (span("exact_match", -0.1, 0.5), "0–50.0%"),
        (span("loss", -0.1, 0.5), "−0.100–0.500"),
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


@pytest.mark.parametrize("metric", ["exact_match", "loss"])
@pytest.mark.parametrize("difference", [0.04, 0.0004, 0.00005, 0.0000049])
def test_a_difference_that_is_not_0_is_not_written_as_0(metric, difference):
    unit = 100 if metric == "exact_match" else 1
    for sign, value in (("+", difference), ("−", -difference)):
        text = signed(metric, value)
        assert text[0] == sign
        assert float(text[1:].replace("−", "-")) == pytest.approx(unit * difference, rel=0.25)


def test_a_difference_that_is_0_has_no_sign():
    assert [signed("exact_match", value) for value in (0.0, -0.0, 5e-17, -5e-17)] == ["0.0"] * 4
    assert [signed("loss", value) for value in (0.0, -0.0)] == ["0"] * 2


def test_the_ends_of_an_interval_are_told_apart():
    assert span("exact_match", 0.98001, 0.98003) == "98.001–98.003%"
    assert span("exact_match", 0.99996, 1.00004) == "99.996–100%"
    assert span("nats_per_character", 2.0401, 2.0403) == "2.0401–2.0403"
    assert span("loss", -1e-30, 0.0) == "−1.00e−30–0"
    assert span("exact_match", 1e-30, 2e-30).count("–") == 1
