"""`attnlab run` in a process of its own, which is watched, hit by signals, and gone in the end whatever happens."""

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
LIMIT = 300.0  # seconds after which a child is said to hang
GLANCE = 0.001  # seconds between two looks at one


class Child:
    """A process of `attnlab`, from the root of the project; `cache` keeps what it compiles.

    `around` is what a shell does with it, which is "$@" there: closes its streams, limits it, or gives it another home.
    Used as a context, which it does not outlive. Its standard error goes into the file `log`.
    """

    def __init__(self, arguments: list[str], log: Path, cache: Path, around: str = 'exec "$@"'):
        self.arguments, self.log, self.began = arguments, log, time.monotonic()
        log.parent.mkdir(parents=True, exist_ok=True)
        chosen = {"JAX_PLATFORMS": "cpu", "JAX_COMPILATION_CACHE_DIR": str(cache), "ATTNLAB_DEBUG": "0"}
        everything = {"JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0"}
        with log.open("wb") as file:
            # A session of its own: what is typed at the terminal of the tests is not meant for it.
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
        """Seconds since it was started."""
        return time.monotonic() - self.began

    def lines(self) -> list[str]:
        """What it has said on standard error so far, whole lines."""
        return self.log.read_text(errors="replace").split("\n")[:-1]

    def said(self, words: str) -> bool:
        """Whether a line of it holds those words."""
        return any(words in line for line in self.lines())

    def meets(self, found: Callable[[], bool]) -> bool:
        """Wait until something is so; False where it ended before that. Raises Fault where neither comes."""
        while not found():
            if self.process.poll() is not None:
                return found()
            self._hangs()
            time.sleep(GLANCE)
        return True

    def survives(self, seconds: float) -> bool:
        """Let it run for so long; False where it ended before that."""
        until = time.monotonic() + seconds
        while time.monotonic() < until and self.process.poll() is None:
            time.sleep(min(GLANCE, max(until - time.monotonic(), 0)))
        return self.process.poll() is None

    def hit(self, number: int) -> None:
        """Send it a signal."""
        self.process.send_signal(number)

    def end(self) -> int:
        """Wait until it ends; its exit code. Raises Fault where it does not."""
        self.meets(lambda: False)
        return self.process.returncode

    def ends_well(self) -> None:
        """Wait until it ends. Raises Fault, with its last line, where that is not with exit code 0."""
        if code := self.end():
            raise Fault(f"exit {code} of attnlab {' '.join(self.arguments)}: {(self.lines() or [''])[-1]!r}")

    def _hangs(self) -> None:
        if self.age > LIMIT:
            raise Fault(f"attnlab {' '.join(self.arguments)} hangs after {(self.lines() or [''])[-1]!r}")
