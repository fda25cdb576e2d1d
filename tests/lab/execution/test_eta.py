import pytest

from attnlab.lab.execution.eta import Eta


class Clock:
    """A clock that a test sets."""

    now = 0.0

    def __call__(self):
        return self.now


@pytest.fixture
def clock():
    return Clock()


def test_time_left_includes_later_variants(clock):
    eta = Eta(clock)
    eta.begin(100, later=60)
    eta.advance(10)
    assert eta.remaining is None
    assert eta.words() == []
    clock.now = 5.0
    eta.advance(20)
    assert eta.speed == pytest.approx(2.0)
    assert eta.remaining == pytest.approx((80 + 60) / 2)
    assert eta.words() == ["2 steps/s", "1 min 10 s left"]


def test_the_speed_of_the_previous_variant_is_used_until_a_new_one_is_measured(clock):
    eta = Eta(clock)
    eta.begin(100)
    eta.advance(100, 4.0)
    eta.begin(100, 60)
    assert eta.remaining == pytest.approx(10)


def test_compilation_is_not_counted_as_training(clock):
    eta = Eta(clock)
    eta.begin(100)
    clock.now = 50.0
    eta.advance(8)
    clock.now = 51.0
    eta.advance(16)
    assert eta.speed == pytest.approx(8)
