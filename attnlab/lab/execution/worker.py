"""The program of a worker process that trains a study. It reads its input from standard input (`worker_input.py`)."""

from __future__ import annotations

import json
import os
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from attnlab.lab.execution.worker_input import WorkerInput
    from attnlab.training.progress import Progress


def work(given: WorkerInput, progress: Progress) -> tuple[str, int] | None:
    """Train the variants (`run_in_order`).

    Args:
        given: the input.
        progress: the `Progress` listener.

    Returns:
        The message and exit code (`explain`) of the first variant that failed, or None.
    """
    import jax

    for name, value in given["jax"].items():
        jax.config.update(name, value)
    from attnlab.console.errors import explain
    from attnlab.lab.execution.variant import run_in_order
    from attnlab.lab.planning.plan import plans
    from attnlab.lab.study import serialize
    from attnlab.lab.study.load import load_code
    from attnlab.lab.study.study import Study
    from attnlab.system import compilation_cache

    compilation_cache.ignore_failures()
    for file in given["sources"]:
        load_code(file)  # adds its own entries to the registries
    experiments = {name: serialize.read(written) for name, written in given["experiments"].items()}
    study = Study(
        next(iter(experiments.values())), name=given["name"], question=given["question"], match=given["match"],
        budget=given["budget"],
    )  # fmt: skip
    found = plans(study, experiments, Path(given["home"]), {}, quick=given["quick"], checked=True)
    failed = run_in_order(found, given["command"], progress, given["workers"], Path(given["shared"]))
    return explain(failed) if failed else None


def main() -> int:
    """Run the worker. An error is printed as one line on stderr. Returns the exit code."""
    if sys.platform != "darwin" and sys.platform != "win32" and (cores := {int(core) for core in sys.argv[1:]}):
        os.sched_setaffinity(0, cores)
    from attnlab.console.errors import explain
    from attnlab.lab.execution.log_lines import Plain
    from attnlab.system.signals import TRAINED, Interrupted, raise_on_signal

    try:
        with raise_on_signal(TRAINED, (progress := Plain()).note):
            refused = work(json.load(sys.stdin), progress)
    except (Exception, Interrupted) as error:
        refused = explain(error)
    if refused is None:
        return 0
    print(refused[0], file=sys.stderr)
    return refused[1]


if __name__ == "__main__":
    # Messages with file names that are not valid UTF-8 must pass, whatever the locale. `workers.py` does the same.
    for stream in (sys.stdin, sys.stderr):
        stream.reconfigure(encoding="utf-8", errors="surrogateescape")  # pyright: ignore[reportAttributeAccessIssue]
    from functools import partial

    from attnlab.system import streams
    from attnlab.system.signals import exit_process

    # If nobody reads its output, the process that started it has gone. Then save and stop.
    streams.prepare(partial(os.kill, os.getpid(), signal.SIGTERM))
    exit_process(main())
