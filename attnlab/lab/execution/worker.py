"""One of several processes that train a study. It reads its orders from standard input (`workers.py`)."""

from __future__ import annotations

import json
import os
import signal
import sys
from pathlib import Path
from typing import Any


def work(told: dict[str, Any], progress: Any) -> tuple[str, int] | None:
    """Train variant after variant (`run_in_order`). Returns what `explain` says of the first that failed."""
    import jax

    for name, value in told["jax"].items():
        jax.config.update(name, value)
    from attnlab.console.errors import explain
    from attnlab.lab.execution.variant import run_in_order
    from attnlab.lab.planning.plan import plans
    from attnlab.lab.study import serialize
    from attnlab.lab.study.load import load_code
    from attnlab.lab.study.study import Study

    for file in told["sources"]:
        load_code(file)  # for what it adds to the registries
    experiments = {name: serialize.read(written) for name, written in told["experiments"].items()}
    study = Study(next(iter(experiments.values())), **told["study"])
    found = plans(study, experiments, Path(told["home"]), {}, quick=told["quick"])
    failed = run_in_order(found, told["command"], progress, told["workers"], Path(told["shared"]))
    return explain(failed) if failed else None


def main() -> int:
    """Work; what cannot be done is one line on stderr, and the exit code says of which kind."""
    if cores := {int(core) for core in sys.argv[1:]}:
        os.sched_setaffinity(0, cores)
    from attnlab.console.errors import explain
    from attnlab.lab.execution.log_lines import Plain
    from attnlab.system.signals import TRAINED, Interrupted, raised

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

    from attnlab.system import streams
    from attnlab.system.signals import end

    # Where nobody reads what it says, the process that started it is gone: it saves and stops.
    streams.prepare(partial(os.kill, os.getpid(), signal.SIGTERM))
    end(main())
