from dataclasses import replace

import pytest

from attnlab.lab.results.estimates import estimate, rates
from attnlab.lab.statistics import interval, summary
from attnlab.storage.json_file import FolderError
from tests.lab.metrics import declared


def test_rates_are_listed_in_ascending_order_with_intervals():
    entries = [{"learning_rate": 0.1, "values": [0.5, 0.7]}, {"learning_rate": 0.01, "values": [0.4, 0.5]}]
    first, second = rates(entries, [], "x")
    assert (first.learning_rate, second.learning_rate) == (0.01, 0.1)
    assert (second.estimate.low, second.estimate.high) == interval([0.5, 0.7])


def test_diverged_seeds_are_counted_and_nonfinite_ones_not_averaged():
    values = [0.5, None, 0.7]
    (one,) = rates([{"learning_rate": 0.1, "values": values}], [0.1, 0.2], "x")
    assert (one.diverged, one.estimate.values, one.estimate.mean) == (1, (0.5, 0.7), pytest.approx(0.6))
    (one,) = rates([{"learning_rate": 0.1, "values": values}], [0.2], "x")
    assert (one.diverged, one.estimate.mean, one.estimate.sound) == (0, None, False)
    (one,) = rates([{"learning_rate": 0.1, "values": [None]}], [0.1], "x")
    assert not one.estimate.sound


@pytest.mark.parametrize(
    "entries", [{}, [1], [{}], [{"learning_rate": 0.1}], [{"learning_rate": 0, "values": []}], [{"values": [1.0]}]]
)
def test_malformed_records_are_named(entries):
    with pytest.raises(FolderError, match=r"^result\.json: by_rate: every entry must have"):
        rates(entries, [], "result.json: by_rate")


def over(*values):
    return estimate(summary(values), "x")


def test_seeds_with_equal_values_have_no_interval():
    for values in ((1.0, 1.0, 1.0), (0.1 + 0.2, 0.3), (0.0, 0.0)):
        still = over(*values)
        assert (still.all_equal, still.shown_interval, still.format_interval(declared("exact_match"))) == (
            True,
            None,
            "no spread",
        )
    moved = over(1.0, 0.9999, 1.0)
    assert moved.shown_interval == interval([1.0, 0.9999, 1.0])
    assert moved.format_interval(declared("exact_match")) == declared("exact_match").format_interval(
        *interval([1.0, 0.9999, 1.0])
    )


def test_the_reason_for_a_missing_interval_is_stated():
    assert over(0.5).format_interval(declared("loss")) == "one seed"
    assert replace(over(0.5, 0.6), low=None).format_interval(declared("loss")) == "no interval"
    assert not replace(over(1.0, 1.0), values=(1.0, 1.0, None)).all_equal
