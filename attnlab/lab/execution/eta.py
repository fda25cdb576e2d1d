"""The speed of a study, and the estimate of the time left."""

import time
from collections.abc import Callable

from attnlab.console.format import duration


class Course:
    """The position within a study, and the time left if all variants run at the present speed."""

    def __init__(self, clock: Callable[[], float] = time.monotonic):
        self.clock = clock
        self.name, self.total, self.step, self.later = "", 0, 0, 0
        self._began = clock()
        self._since: tuple[float, int] | None = None
        self._speed: float | None = None

    def variant(self, name: str, total: int, done: int = 0, later: int = 0) -> None:
        """Begin the next variant. Until its speed is known, that of the previous one is used.

        Args:
            name: the name of the variant.
            total: its number of steps.
            done: the number of steps that are done already.
            later: the number of steps of all later variants.
        """
        self.name, self.total, self.step, self.later = name, total, done, later
        self._began, self._since = self.clock(), None

    def advance(self, step: int, speed: float | None) -> None:
        """Record the number of steps that are done.

        The first call only starts the clock, because the time before it includes compilation.

        Args:
            step: the number of steps that are done.
            speed: the speed in steps per second, or None to measure it between calls.
        """
        self.step = step
        if speed is not None:
            self._speed = speed
        elif self._since is None:
            self._since = self.clock(), step
        elif (elapsed := self.clock() - self._since[0]) > 0:
            self._speed = (step - self._since[1]) / elapsed

    @property
    def elapsed(self) -> float:
        """The seconds since the present variant began."""
        return self.clock() - self._began

    @property
    def speed(self) -> float | None:
        """The speed in steps per second, or None while it is unknown."""
        return self._speed

    @property
    def remaining(self) -> float | None:
        """The seconds left in the whole study, or None while unknown."""
        return (self.total - self.step + self.later) / self._speed if self._speed else None


def beginning(done_steps: int) -> str:
    """Describe what a variant does before its first step."""
    return f"reading the checkpoint of step {done_steps} …" if done_steps else "creating the models …"


def throughput(course: Course) -> list[str]:
    """Return speed and time left in words, or an empty list while they are unknown."""
    if course.speed is None or course.remaining is None:
        return []
    return [f"{course.speed:.3g} steps/s", f"{duration(max(1, round(course.remaining)))} left"]
