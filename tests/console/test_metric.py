import math

import pytest

from attnlab.console.format import NONE
from attnlab.console.metric import Metric
from tests.lab.metrics import declared

STRANGE = Metric("my_rate_of_nothing", "", 0, 7, higher=True)  # named like a fraction, but it is none
COST = Metric("loss_match_free_nats", "%", 0, 1)  # named like a cost, but it is a fraction for which lower is better


@pytest.mark.parametrize("value", [None, "1", True, float("nan"), float("inf"), 1e300, 10**400, [1]])
def test_nonfinite_numbers(value):
    assert declared("loss").format(value) == NONE


@pytest.mark.parametrize(
    ("shown", "words"),
    [
        (declared("exact_match").format(1.0), "100.0%"),
        (declared("exact_match").format(0.99996), "100.00%"),
        (declared("word_error_rate").format(0.0), "0.0%"),
        (declared("bleu_tokenised_lower").format(0.4102), "41.0"),
        (Metric("ap50.RBC", "points").format(0.9), "90.0"),
        (declared("apples").format(0.9), "0.900"),
        (declared("bleu").format_interval(0.3, 0.35), "30.0–35.0"),
        (declared("loss").format(-0.5), "−0.500"),
        (declared("loss").format_difference(-0.5), "−0.500"),
        (declared("exact_match").format_difference(0.021), "+2.1"),
        (declared("exact_match").format_difference(-0.9), "−90.0"),
        (declared("exact_match").format_interval(-0.1, 0.5), "0–50.0%"),
        (declared("loss").format_interval(-0.1, 0.5), "−0.100–0.500"),
        (declared("perplexity").format_interval(-3.0, 14.0), "1.00–14.0"),
        (declared("nats").format_interval(-0.1, 2.1), "0–2.10"),
        (declared("phoneme_error_rate").format_interval(-0.1, 1.1), "0–110.0%"),
        (STRANGE.format(0.5), "0.500"),
        (STRANGE.format_interval(-1.0, 8.0), "0–7.00"),
        (STRANGE.format_difference(0.5), "+0.500"),
        (" ".join(STRANGE.format_difference_interval(-9.0, 9.0)), "−7.00 +7.00"),
        (STRANGE.format_size(0.5), "0.5"),
        (COST.format(0.5), "50.0%"),
        (COST.format_interval(-1.0, 8.0), "0–100%"),
        (COST.format_difference(0.5), "+50.0"),
        (COST.format_size(0.5), "50 points"),
        (COST.format_tick(0.25), "25%"),
    ],
)
def test_a_metric_is_printed_as_it_is_declared(shown, words):
    assert shown == words


def test_the_worst_value_follows_from_range_and_direction():
    assert (STRANGE.worst, COST.worst, declared("loss").worst, STRANGE.width) == (0, 1, math.inf, 7)


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"unit": "s"}, "unit='s' must be one of '', '%', 'points'"),
        ({"low": 1, "high": 0}, "low=1 must be below high=0"),
        ({"low": math.nan}, "low=nan must be below high=inf"),
    ],
)
def test_an_impossible_declaration_is_refused(fields, words):
    with pytest.raises(ValueError, match=rf"^metric 'x': {words}$"):
        Metric("x", **fields)


@pytest.mark.parametrize("metric", ["exact_match", "loss"])
@pytest.mark.parametrize("difference", [0.04, 0.0004, 0.00005, 0.0000049])
def test_a_difference_that_is_not_0_is_not_written_as_0(metric, difference):
    unit = 100 if metric == "exact_match" else 1
    for sign, value in (("+", difference), ("−", -difference)):
        text = declared(metric).format_difference(value)
        assert text[0] == sign
        assert float(text[1:].replace("−", "-")) == pytest.approx(unit * difference, rel=0.25)


def test_a_difference_that_is_0_has_no_sign():
    assert [declared("exact_match").format_difference(value) for value in (0.0, -0.0, 5e-17, -5e-17)] == ["0.0"] * 4
    assert [declared("loss").format_difference(value) for value in (0.0, -0.0)] == ["0"] * 2


def test_the_ends_of_an_interval_are_printed_differently():
    assert declared("exact_match").format_interval(0.98001, 0.98003) == "98.001–98.003%"
    assert declared("exact_match").format_interval(0.99996, 1.00004) == "99.996–100%"
    assert declared("nats_per_character").format_interval(2.0401, 2.0403) == "2.0401–2.0403"
    assert declared("loss").format_interval(-1e-30, 0.0) == "−1.00e−30–0"
    assert declared("exact_match").format_interval(1e-30, 2e-30).count("–") == 1
