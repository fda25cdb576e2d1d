import pytest

from attnlab.lab.reporting.axis import axis, log_ticks
from tests.lab.metrics import declared


def test_even_steps():
    found = axis([1.0, 3.0])
    assert found.ticks == (1.0, 2.0, 3.0)
    assert found.share(2.0) == pytest.approx(0.5)
    assert (found.share(-10), found.share(10)) == (0, 1)
    assert found.at(2.0) == "50.00%"


def test_ticks_are_at_even_factors():
    assert log_ticks(0.9, 110.0, 5) == pytest.approx([1, 3, 10, 30, 100])


@pytest.mark.parametrize(
    "ends", [(1.0, 1.0), (57.0, 143.0), (24_576.0, 24_577.0), (1e-9, 1e12), (1.0, 2.5), (3e-4, 3e-3), (1e-99, 1e99)]
)
def test_every_range_has_two_or_more_ticks_and_not_too_many(ends):
    low, high = ends[0] / 1.05, ends[1] * 1.05
    found = log_ticks(low, high, 5)
    assert 2 <= len(found) <= 10
    assert all(low <= tick <= high for tick in found)


@pytest.mark.parametrize("ends", [(0.137, 0.96), (0.0, 1.0), (0.4, 0.42), (0.99, 1.0), (1.0, 1.0)])
def test_a_rate_has_two_or_more_ticks_and_not_too_many(ends):
    found = axis(ends, declared("exact_match"))
    assert 2 <= len(found.ticks) <= 6


def test_a_rate_has_no_ticks_outside_its_range():
    assert axis([0.99, 1.01], declared("exact_match")).ticks[-1] == pytest.approx(1)
    assert max(axis([0.99, 1.01], declared("loss")).ticks) > 1


def test_error_rates_may_exceed_one():
    for numbers in ([1.29, 1.30, 1.31], [1.29], [0.2, 1.35]):
        found = axis(numbers, declared("word_edit_rate"))
        assert found.low < min(numbers) <= max(numbers) < found.high
        assert found.ticks
    assert max(axis([0.2, 1.0], declared("word_error_rate")).ticks) == 1
