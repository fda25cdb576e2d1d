import pytest

from attnlab.console.format import NONE, count, duration, large, listing, number


@pytest.mark.parametrize("value", [None, "1", True, float("nan"), float("inf"), 1e300, 10**400, [1]])
def test_nonfinite_numbers(value):
    assert number(value) is None
    shown = (count(value), large(value, "B"), duration(value))
    assert set(shown) == {NONE}


@pytest.mark.parametrize(
    ("shown", "words"),
    [
        (large(999.7e3, "B"), "1000 kB"),
        (large(0, "B"), "0 B"),
        (duration(0.9996), "1000 ms"),
        (duration(59.99), "60 s"),
        (duration(3661), "1 h 1 min"),
        (count(1e6), "1,000,000"),
    ],
)
def test_numbers_are_short_and_readable(shown, words):
    assert shown == words


def test_a_listing_hides_only_what_is_above_its_limit():
    assert listing([]) == ""
    assert listing(["a", "b"], most=2) == "a, b"
    assert listing(["a", "b"], most=1) == "a and 1 more"
    assert listing([f"{n}" for n in range(10)]) == "0, 1, 2, 3, 4, 5, 6, 7 and 2 more"
