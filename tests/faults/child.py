"""Runs `attnlab` in a child process that tests watch and send signals to. It never outlives its context."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from tests.faults.count import Fault

ROOT = Path(__file__).parents[2]
LIMIT = 300.0  # seconds after which a child counts as hanging
GLANCE = 0.001  # seconds between two polls of a child


class Child:
    """A process of `attnlab` in the root of the project. `cache` is the folder of its compilation cache.

    `around` is a shell script in which "$@" is the command line of the process. It can close the streams of the
    process, limit it, or change its environment. The process is a context manager, which kills it on exit. Its standard
    error goes to the file `log`.
    """

    def __init__(self, arguments: list[str], log: Path, cache: Path, around: str = 'exec "$@"'):
        self.arguments, self.log, self.began = arguments, log, time.monotonic()
        log.parent.mkdir(parents=True, exist_ok=True)
        chosen = {"JAX_PLATFORMS": "cpu", "JAX_COMPILATION_CACHE_DIR": str(cache), "ATTNLAB_DEBUG": "0"}
        everything = {"JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0"}
        with log.open("wb") as file:
            # The child has its own session, so that the terminal of the tests does not send it signals.
            self.process = subprocess.Popen(
                ["sh", "-c", around, "sh", sys.executable, "-m", "attnlab", *arguments], cwd=ROOT,
                env=os.environ | chosen | everything | {"PYTHONPATH": str(ROOT)},
                stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=file, start_new_session=True,
            )  # fmt: skip

    def __enter__(self) -> Child:
        return self

    def __exit__(self, *raised) -> None:
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()

    @property
    def age(self) -> float:
        """The seconds since the process was started."""
        return time.monotonic() - self.began

    def lines(self) -> list[str]:
        """Returns the complete lines that the process has written to standard error so far."""
        return self.log.read_text(errors="replace").split("\n")[:-1]

    def said(self, words: str) -> bool:
        """Returns whether a line on standard error contains `words`."""
        return any(words in line for line in self.lines())

    def meets(self, found: Callable[[], bool]) -> bool:
        """Waits until `found()` is true. Returns False if the process ends before that. Raises Fault if it hangs."""
        while not found():
            if self.process.poll() is not None:
                return found()
            self._hangs()
            time.sleep(GLANCE)
        return True

    def survives(self, seconds: float) -> bool:
        """Waits for this many seconds. Returns False if the process ends before that."""
        until = time.monotonic() + seconds
        while time.monotonic() < until and self.process.poll() is None:
            time.sleep(min(GLANCE, max(until - time.monotonic(), 0)))
        return self.process.poll() is None

    def hit(self, number: int) -> None:
        """Sends a signal to the process."""
        self.process.send_signal(number)

    def end(self) -> int:
        """Waits until the process ends and returns its exit code. Raises Fault if it hangs."""
        self.meets(lambda: False)
        return self.process.returncode

    def ends_well(self) -> None:
        """Waits until the process ends. Raises Fault with its last line if the exit code is not 0."""
        if code := self.end():
            raise Fault(f"exit {code} of attnlab {' '.join(self.arguments)}: {(self.lines() or [''])[-1]!r}")

    def _hangs(self) -> None:
        if self.age > LIMIT:
            raise Fault(f"attnlab {' '.join(self.arguments)} hangs after {(self.lines() or [''])[-1]!r}")
