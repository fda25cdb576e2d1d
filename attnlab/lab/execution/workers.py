"""Several processes that share the variants of a study. Each takes the next variant that no other has."""

from __future__ import annotations

import json
import queue
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory

from attnlab.lab.execution.worker_input import worker_input
from attnlab.lab.planning.plan import Plan
from attnlab.system.cores import cores
from attnlab.system.device import allocate_on_demand
from attnlab.system.signals import NUMBERS, Interrupted, handled
from attnlab.training.progress import Progress

FAILED = re.compile(r"\bvariant (.+?) failed: (.*)")  # a note of `run_in_order`


class WorkerError(Exception):
    """Raised if a worker process failed, with its last message and its exit code."""

    def __init__(self, message: str, code: int):
        super().__init__(message)
        self.exit_code, self.is_stop = code, code - 128 in NUMBERS


def run_workers(plans: Sequence[Plan], workers: int, home: Path, command: str, progress: Progress) -> None:
    """Train the unfinished variants of a study in several processes.

    The cores are divided into `workers` shares, and each process gets one. A variant that is resumed alone keeps to its
    share, so that its sums come in the same order as without the interruption.

    Each process reads the experiments as JSON. It first executes the experiment files whose registry entries the
    experiments use. Then it goes through the variants in order, and skips those that are locked, finished, or failed in
    another process. After a failure it trains the next variant, so that an error or a killed process loses only its own
    variant. Signals are passed on to all processes, which then save.

    Args:
        plans: the plans of all variants.
        workers: the number of processes, of which no more are started than variants are unfinished.
        home: the folder of the study.
        command: the command line that is recorded in each run.
        progress: the `Progress` listener. The output of the processes arrives as notes.

    Raises:
        ValueError: as `sources` does.
        Interrupted: after all processes have ended, if they were stopped by a signal.
        WorkerError: after all processes have ended, if one failed or was killed.
    """
    waiting = [plan for plan in plans if plan.done is None]
    processes = min(workers, len(waiting))
    if processes > 1:
        progress.note(f"{processes} processes share {len(waiting)} variants")
    lines: queue.Queue[str | None] = queue.Queue()
    allocate_on_demand()
    with TemporaryDirectory(prefix="attnlab-", ignore_cleanup_errors=True) as shared:
        # In ASCII: file names that are not valid in the locale hold surrogates, which UTF-8 would turn into letters.
        written = json.dumps(worker_input(plans, workers, home, shared, command))
        running = [_Worker(written, cores, lines) for cores in _shares(workers)[:processes]]
        with _signals(running):
            ended, failures = 0, []
            while ended < len(running):
                line = lines.get()
                ended += line is None
                if line:
                    failures += FAILED.findall(line)
                    progress.note(line)
    if failed := [worker for worker in running if worker.process.returncode]:
        last, number = failed[0].last, failed[0].code - 128
        if number in NUMBERS:
            raise Interrupted(number, last.partition(f"{signal.Signals(number).name} ")[2] or "at once")
        if failed[0].process.returncode < 0:
            last = f"a process was killed by {_called(number)}; its last message: {last}"
        error = WorkerError(last, failed[0].code)
        if failures:
            vars(error)["variant"] = failures[0][0]
        raise error


def _called(number: int) -> str:
    """Return the name of a signal."""
    return signal.Signals(number).name if number in set(signal.Signals) else f"signal {number}"


class _Worker:
    """A process, and a thread that puts its output into the queue `lines`, then None when it has ended."""

    def __init__(self, json_input: str, cores: set[int], lines: queue.Queue):
        self.last = "a worker process ended without a message"
        self.process = subprocess.Popen(
            [sys.executable, "-m", "attnlab.lab.execution.worker", *map(str, sorted(cores))],
            stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, encoding="utf-8",
            # Messages with file names that are not valid UTF-8 must pass, whatever the locale.
            errors="surrogateescape",
            # In its own session it gets each signal once, from this process. A second one, from the terminal, would
            # mean to stop at once.
            start_new_session=True,
        )  # fmt: skip
        threading.Thread(target=self._listen, args=(json_input, lines), daemon=True).start()

    @property
    def code(self) -> int:
        """The exit code in the convention of shells: 128 plus the signal number if a signal killed the process."""
        code = self.process.returncode
        return 128 - code if code < 0 else code

    def _listen(self, json_input: str, lines: queue.Queue) -> None:
        commands, messages = self.process.stdin, self.process.stderr
        assert commands is not None
        assert messages is not None
        try:
            # A process that ended before it had read everything reports the reason itself.
            with suppress(BrokenPipeError), commands:
                commands.write(json_input)
            with messages:
                for line in messages:
                    self.last = line.rstrip().removeprefix("attnlab: ").removeprefix("error: ") or self.last
                    if not line.startswith("attnlab: "):  # the reason of its end, which the waiting process reports
                        lines.put(line.rstrip())
        finally:
            self.process.wait()
            lines.put(None)


@contextmanager
def _signals(running: Sequence[_Worker]) -> Iterator[None]:
    """Pass signals on to the workers while the context is active, and end all of them with it."""

    def hand(number, frame):
        for worker in running:
            if worker.process.poll() is None:
                worker.process.send_signal(number)

    try:
        with handled(hand):
            yield
    finally:
        hand(signal.SIGTERM, None)


def _shares(workers: int) -> list[set[int]]:
    """Divide the cores evenly. A share is empty, so not bound, if the system cannot bind or there are too few cores."""
    mine = [] if sys.platform in ("darwin", "win32") else cores()
    return [set(mine[n::workers]) for n in range(workers)]
