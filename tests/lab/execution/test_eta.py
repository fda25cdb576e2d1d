import pytest

from attnlab.lab.execution.eta import Course, throughput


class Clock:
    """A clock that a test turns by hand."""

    now = 0.0

    def __call__(self):
        return self.now


@pytest.fixture
def clock():
    return Clock()


def test_time_left_counts_the_variants_to_come(clock):
    course = Course(clock)
    course.variant("softmax", 100, later=60)
    course.advance(10, None)
    assert course.remaining is None
    assert throughput(course) == []
    clock.now = 5.0
    course.advance(20, None)
    assert course.speed == pytest.approx(2.0)
    assert course.remaining == pytest.approx((80 + 60) / 2)
    assert throughput(course) == ["2 steps/s", "1 min 10 s left"]


def test_the_speed_before_serves_until_there_is_another(clock):
    course = Course(clock)
    course.variant("softmax", 100)
    course.advance(100, 4.0)
    course.variant("linear", 100, 60)
    assert course.remaining == pytest.approx(10)


def test_compilation_is_not_counted_as_training(clock):
    course = Course(clock)
    course.variant("softmax", 100)
    clock.now = 50.0
    course.advance(8, None)
    clock.now = 51.0
    course.advance(16, None)
    assert course.speed == pytest.approx(8)
