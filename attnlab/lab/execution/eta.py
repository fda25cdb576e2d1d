"""How fast a study goes and when it will be done."""

import time
from collections.abc import Callable

from attnlab.console.format import duration


class Course:
    """How far the study is and how long the rest will take, if all variants go at the present speed."""

    def __init__(self, clock: Callable[[], float] = time.monotonic):
        self.clock = clock
        self.name, self.total, self.step, self.later = "", 0, 0, 0
        self._began = clock()
        self._since: tuple[float, int] | None = None
        self._speed: float | None = None

    def variant(self, name: str, total: int, done: int = 0, later: int = 0) -> None:
        """The next variant, of `total` steps, `later` ones after it; till its speed is known the last one's serves."""
        self.name, self.total, self.step, self.later = name, total, done, later
        self._began, self._since = self.clock(), None

    def advance(self, step: int, speed: float | None) -> None:
        """So many steps are done. The first call starts the watch: what came before holds the compilation."""
        self.step = step
        if speed is not None:
            self._speed = speed
        elif self._since is None:
            self._since = self.clock(), step
        elif (elapsed := self.clock() - self._since[0]) > 0:
            self._speed = (step - self._since[1]) / elapsed

    @property
    def elapsed(self) -> float:
        """Seconds since the present variant began."""
        return self.clock() - self._began

    @property
    def speed(self) -> float | None:
        """Steps a second, or None while unknown."""
        return self._speed

    @property
    def remaining(self) -> float | None:
        """Seconds left in the whole study, or None while unknown."""
        return (self.total - self.step + self.later) / self._speed if self._speed else None


def beginning(done_steps: int) -> str:
    """What a variant does before its first step."""
    return f"reading the checkpoint of step {done_steps} …" if done_steps else "creating the models …"


def throughput(course: Course) -> list[str]:
    """Speed and time left in words; nothing while they are unknown."""
    if course.speed is None or course.remaining is None:
        return []
    return [f"{course.speed:.3g} steps/s", f"{duration(max(1, round(course.remaining)))} left"]
