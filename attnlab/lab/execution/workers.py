"""Several processes that share the variants of a study. Each takes the next variant that no other has."""

from __future__ import annotations

import os
import queue
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TextIO

import jax

from attnlab import registry
from attnlab.lab.planning.plan import Plan
from attnlab.lab.study.load import ADDED
from attnlab.lab.study.user_code import tags, user_defined
from attnlab.storage.json_file import dumps
from attnlab.system import settings
from attnlab.system.cores import cores
from attnlab.system.device import allocate_on_demand
from attnlab.system.signals import NUMBERS, Interrupted, handled

FAILED = re.compile(r"\bvariant (.+?) failed: (.*)")  # a note of `run_in_order`
STUDY = ("name", "question", "match", "budget")  # the fields of the study that a worker receives
# The jax settings that a worker receives, because they may have been set by a call: platform, precision, randomness.
JAX = (
    "jax_platforms", "jax_default_matmul_precision", "jax_numpy_dtype_promotion", "jax_debug_nans",
    "jax_compilation_cache_dir", *settings.NUMBERS,
)  # fmt: skip


class WorkerError(Exception):
    """Raised if a worker process failed, with its last message and its exit code."""

    def __init__(self, message: str, code: int):
        super().__init__(message)
        self.exit_code, self.is_stop = code, code - 128 in NUMBERS


def share(plans: Sequence[Plan], workers: int, home: Path, command: str, progress: Any) -> None:
    """Train the unfinished variants of a study in several processes.

    Each process gets a share of the cores and reads the experiments as JSON. It first executes the experiment files
    whose registry entries the experiments use. Then it goes through the variants in order, and skips those that are
    locked, finished, or failed in another process. After a failure it trains the next variant, so that an error or a
    killed process loses only its own variant. Signals are passed on to all processes, which then save.

    Args:
        plans: the plans of all variants.
        workers: the number of processes.
        home: the folder of the study.
        command: the command line that is recorded in each run.
        progress: the `Progress` listener. The output of the processes arrives as notes.

    Raises:
        ValueError: as `sources` does.
        Interrupted: after all processes have ended, if they were stopped by a signal.
        WorkerError: after all processes have ended, if one failed or was killed.
    """
    waiting = [plan for plan in plans if plan.done is None]
    progress.note(f"{workers} processes share {len(waiting)} variants")
    lines: queue.Queue[str | None] = queue.Queue()
    orders = _orders(plans, workers, home, command)
    allocate_on_demand()
    with TemporaryDirectory(prefix="attnlab-", ignore_cleanup_errors=True) as shared:
        written = dumps(orders | {"shared": shared})
        running = [_Worker(written, cores, lines) for cores in _shares(workers)]
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


def sources(plans: Sequence[Plan]) -> list[str]:
    """Return the experiment files that added the registry entries which the experiments use.

    Args:
        plans: the plans of all variants.

    Raises:
        ValueError: if an experiment uses your own class that was registered elsewhere, for example in a notebook,
            because another process cannot import it.
    """
    files: dict[str, None] = {}
    mine = {tag: kind for plan in plans for tag, kind in user_defined(plan.written).items()}
    for place, name in dict.fromkeys(tag for plan in plans for tag in tags(plan.written)):
        value, file = ADDED.get((place, name), (None, None))
        if file is not None and value is registry.table(place)[name]:
            files[str(file)] = None
        elif (place, name) in mine:
            raise ValueError(
                f"workers: {name!r} of attnlab.{place} is defined in {mine[place, name].__module__}, which worker "
                "processes do not import; set workers=1, or define it in the experiment file"
            )
    return list(files)


def _orders(plans: Sequence[Plan], workers: int, home: Path, command: str) -> dict[str, Any]:
    """Return the orders that each worker reads from its standard input."""
    first = plans[0]
    return {
        "jax": {name: settings.value(jax.config, name, None) for name in JAX if hasattr(jax.config, name)},
        "study": {name: getattr(first.study, name) for name in STUDY},
        "home": str(home), "command": command, "workers": workers, "quick": first.quick,
        "sources": sources(plans),
        "experiments": {plan.variant: plan.written for plan in plans},
    }  # fmt: skip


def _called(number: int) -> str:
    """Return the name of a signal."""
    return signal.Signals(number).name if number in set(signal.Signals) else f"signal {number}"


class _Worker:
    """A process, and a thread that puts its output into the queue `lines`, then None when it has ended."""

    def __init__(self, orders: str, cores: set[int], lines: queue.Queue):
        self.last = "a worker process ended without a message"
        self.process = subprocess.Popen(
            [sys.executable, "-m", "attnlab.lab.execution.worker", *map(str, sorted(cores))],
            stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, encoding="utf-8",
            # File names that are not valid UTF-8 must pass unchanged, whatever the locale.
            errors="surrogateescape",
            # In its own session it gets each signal once, from this process. A second one, from the terminal, would
            # mean to stop at once.
            start_new_session=True,
        )  # fmt: skip
        threading.Thread(target=self._listen, args=(orders, lines), daemon=True).start()

    @property
    def code(self) -> int:
        """The exit code in the convention of shells: 128 plus the signal number if a signal killed the process."""
        code = self.process.returncode
        return 128 - code if code < 0 else code

    def _listen(self, orders: str, lines: queue.Queue) -> None:
        pipes: Any = self.process
        try:
            self._send(pipes.stdin, orders)
            with pipes.stderr:
                for line in pipes.stderr:
                    self.last = line.rstrip().removeprefix("attnlab: ").removeprefix("error: ") or self.last
                    if not line.startswith("attnlab: "):  # the reason of its end, which the waiting process reports
                        lines.put(line.rstrip())
        finally:
            self.process.wait()
            lines.put(None)

    def _send(self, pipe: TextIO, orders: str) -> None:
        try:
            with pipe:
                pipe.write(orders)
        except BrokenPipeError:
            pass  # it ended before it had read everything, and reports the reason itself


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
    mine = cores() if hasattr(os, "sched_setaffinity") else []
    return [set(mine[n::workers]) for n in range(workers)]
