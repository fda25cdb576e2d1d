"""Several processes that share the variants of a study: each takes the next one that nobody has."""

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
from attnlab.lab import settings
from attnlab.lab.cores import cores
from attnlab.lab.device import apiece
from attnlab.lab.file import ADDED
from attnlab.lab.jsonfile import dumps
from attnlab.lab.own import own, tags
from attnlab.lab.plan import Plan
from attnlab.training.signals import NUMBERS, Interrupted, handled

FAILED = re.compile(r"\bvariant (.+?) failed: (.*)")  # a note of `in_turn`
STUDY = ("name", "question", "match", "budget")  # what a worker is told of the study
# And of how jax is set here, by a call perhaps: where it computes, with which numbers, and what it draws.
JAX = (
    "jax_platforms", "jax_default_matmul_precision", "jax_numpy_dtype_promotion", "jax_debug_nans",
    "jax_compilation_cache_dir", *settings.NUMBERS,
)  # fmt: skip


class WorkerError(Exception):
    """A process that shared the work failed: what it said last, and its exit code."""

    def __init__(self, said: str, code: int):
        super().__init__(said)
        self.exit_code = code


def share(plans: Sequence[Plan], workers: int, home: Path, command: str, progress: Any) -> None:
    """Train the variants of a study that are not done in so many processes.

    Each process has its share of the cores, runs the experiment files whose own entries the experiments name, reads the
    experiments as JSON, and goes through the variants in order, leaving out those whose folder is locked or done, and
    those that failed in another of them. After a variant that fails it trains the next: so what fails or kills a
    process loses its own variant alone. What they say is told as notes. Signals reach them all, and they save.

    Raises ValueError as `sources` does; once all have ended, Interrupted where they were stopped, WorkerError where
    one failed or was killed.
    """
    waiting = [plan for plan in plans if plan.done is None]
    progress.note(f"{workers} processes share {len(waiting)} variants")
    lines: queue.Queue[str | None] = queue.Queue()
    told = _told(plans, workers, home, command)
    apiece()
    with TemporaryDirectory(prefix="attnlab-", ignore_cleanup_errors=True) as shared:
        written = dumps(told | {"shared": shared})
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
            last = f"a process was killed by {_called(number)}; it last said: {last}"
        error = WorkerError(last, failed[0].code)
        if failures:
            vars(error)["variant"] = failures[0][0]
        raise error


def sources(plans: Sequence[Plan]) -> list[str]:
    """The experiment files that put into the registries what the experiments name and attnlab does not.

    Raises ValueError naming what is of one's own and was put there elsewhere, as in a notebook: another process cannot
    learn it.
    """
    files: dict[str, None] = {}
    mine = {tag: kind for plan in plans for tag, kind in own(plan.written).items()}
    for place, name in dict.fromkeys(tag for plan in plans for tag in tags(plan.written)):
        value, file = ADDED.get((place, name), (None, None))
        if file is not None and value is registry.table(place)[name]:
            files[str(file)] = None
        elif (place, name) in mine:
            raise ValueError(
                f"workers: {name!r} of attnlab.{place} is defined in {mine[place, name].__module__}, which other "
                "processes do not run; take workers=1, or define it in the experiment file"
            )
    return list(files)


def _told(plans: Sequence[Plan], workers: int, home: Path, command: str) -> dict[str, Any]:
    first = plans[0]
    return {
        "jax": {name: settings.value(jax.config, name, None) for name in JAX if hasattr(jax.config, name)},
        "study": {name: getattr(first.study, name) for name in STUDY},
        "home": str(home), "command": command, "workers": workers, "quick": first.quick,
        "sources": sources(plans),
        "experiments": {plan.variant: plan.written for plan in plans},
    }  # fmt: skip


def _called(number: int) -> str:
    return signal.Signals(number).name if number in set(signal.Signals) else f"signal {number}"


class _Worker:
    """A process, and a thread that puts what it says into `lines`; None when it has ended."""

    def __init__(self, told: str, cores: set[int], lines: queue.Queue):
        self.last = "a worker ended without a word"
        self.process = subprocess.Popen(
            [sys.executable, "-m", "attnlab.lab.worker", *map(str, sorted(cores))],
            stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, encoding="utf-8",
            # Names that are no UTF-8 come through, whatever the locale.
            errors="surrogateescape",
            # Signals come from us, once: a terminal's would reach it too, and a second one means at once.
            start_new_session=True,
        )  # fmt: skip
        threading.Thread(target=self._listen, args=(told, lines), daemon=True).start()

    @property
    def code(self) -> int:
        """Its exit code as a shell has it: killed by a signal is 128 and the signal's number."""
        code = self.process.returncode
        return 128 - code if code < 0 else code

    def _listen(self, told: str, lines: queue.Queue) -> None:
        pipes: Any = self.process
        try:
            self._tell(pipes.stdin, told)
            with pipes.stderr:
                for line in pipes.stderr:
                    self.last = line.rstrip().removeprefix("attnlab: ").removeprefix("error: ") or self.last
                    if not line.startswith("attnlab: "):  # why it ended, which the process that waits for it says
                        lines.put(line.rstrip())
        finally:
            self.process.wait()
            lines.put(None)

    def _tell(self, pipe: TextIO, told: str) -> None:
        try:
            with pipe:
                pipe.write(told)
        except BrokenPipeError:
            pass  # it ended before it had read all: why, it says itself


@contextmanager
def _signals(running: Sequence[_Worker]) -> Iterator[None]:
    """While it holds, signals are passed on to the workers, none of which outlives it."""

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
    """The cores of each, as even as they go; none named where the system cannot bind, or there are too few."""
    mine = cores() if hasattr(os, "sched_setaffinity") else []
    return [set(mine[n::workers]) for n in range(workers)]
