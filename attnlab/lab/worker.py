"""A process of a study that several share: told on standard input what there is to do (`attnlab.lab.workers`)."""

from __future__ import annotations

import json
import os
import signal
import sys
from pathlib import Path
from typing import Any


def work(told: dict[str, Any], progress: Any) -> tuple[str, int] | None:
    """Train what is told, variant after variant (`in_turn`). Answers what `explain` says of the first that failed."""
    import jax

    for name, value in told["jax"].items():
        jax.config.update(name, value)
    from attnlab.lab import configuration
    from attnlab.lab.conduct import in_turn
    from attnlab.lab.file import load_code
    from attnlab.lab.plan import plans
    from attnlab.lab.refusal import explain
    from attnlab.lab.study import Study

    for file in told["sources"]:
        load_code(file)  # for what it adds to the registries
    experiments = {name: configuration.read(written) for name, written in told["experiments"].items()}
    study = Study(next(iter(experiments.values())), **told["study"])
    found = plans(study, experiments, Path(told["home"]), {}, quick=told["quick"])
    failed = in_turn(found, told["command"], progress, told["workers"], Path(told["shared"]))
    return explain(failed) if failed else None


def main() -> int:
    """Work; what cannot be done is one line on stderr, and the exit code says of which kind."""
    if cores := {int(core) for core in sys.argv[1:]}:
        os.sched_setaffinity(0, cores)
    from attnlab.lab.progress import Plain
    from attnlab.lab.refusal import explain
    from attnlab.training.signals import TRAINED, Interrupted, raised

    try:
        with raised(TRAINED, (progress := Plain()).note):
            refused = work(json.load(sys.stdin), progress)
    except (Exception, Interrupted) as error:
        refused = explain(error)
    if refused is None:
        return 0
    print(refused[0], file=sys.stderr)
    return refused[1]


if __name__ == "__main__":
    # Names that are no UTF-8 come through, whatever the locale; `workers.py` reads and writes likewise.
    for stream in (sys.stdin, sys.stderr):
        stream.reconfigure(encoding="utf-8", errors="surrogateescape")  # pyright: ignore[reportAttributeAccessIssue]
    from functools import partial

    from attnlab.lab import streams
    from attnlab.training.signals import end

    # Where nobody reads what it says, the process that started it is gone: it saves and stops.
    streams.prepare(partial(os.kill, os.getpid(), signal.SIGTERM))
    end(main())
