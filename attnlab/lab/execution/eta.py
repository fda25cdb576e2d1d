"""The speed of a study, and the estimate of the time left."""

import time
from collections.abc import Callable

from attnlab.console.format import duration


class Eta:
    """The steps done in a study, and the time left if all variants run at the present speed."""

    def __init__(self, clock: Callable[[], float] = time.monotonic):
        self.clock = clock
        self.total, self.step, self.later = 0, 0, 0
        self.speed: float | None = None  # in steps per second, None while it is unknown
        self._began = clock()
        self._since: tuple[float, int] | None = None

    def begin(self, total: int, done: int = 0, later: int = 0) -> None:
        """Begin the next variant. Until its speed is known, that of the previous one is used.

        Args:
            total: the number of steps of the variant.
            done: the number of steps that are done already.
            later: the number of steps of all later variants.
        """
        self.total, self.step, self.later = total, done, later
        self._began, self._since = self.clock(), None

    def advance(self, step: int, speed: float | None = None) -> None:
        """Record the number of steps that are done.

        The first call only starts the clock, because the time before it includes compilation.

        Args:
            step: the number of steps that are done.
            speed: the speed in steps per second, or None to measure it between calls.
        """
        self.step = step
        if speed is not None:
            self.speed = speed
        elif self._since is None:
            self._since = self.clock(), step
        elif (elapsed := self.clock() - self._since[0]) > 0:
            self.speed = (step - self._since[1]) / elapsed

    @property
    def elapsed(self) -> float:
        """The seconds since the present variant began."""
        return self.clock() - self._began

    @property
    def remaining(self) -> float | None:
        """The seconds left in the whole study, or None while unknown."""
        return (self.total - self.step + self.later) / self.speed if self.speed else None

    def words(self) -> list[str]:
        """Return speed and time left in words, or an empty list while they are unknown."""
        if not self.speed or self.remaining is None:
            return []
        return [f"{self.speed:.3g} steps/s", f"{duration(max(1, round(self.remaining)))} left"]
