"""A second process that helps to count the FLOPs of many experiments. It starts from the last one expected."""

from __future__ import annotations

import gc
import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

from attnlab.system.cores import cores

if TYPE_CHECKING:
    from attnlab.lab.planning.ledger import Ledger

MANY = 3  # experiments from which on a second process pays, since it takes seconds to start
COMMAND = [sys.executable, "-m", "attnlab.lab.planning.helper"]


@contextmanager
def helper() -> Iterator[Any]:
    """Start a helper process, which begins to import what it needs at once. Yields None if there is only one core."""
    if len(cores()) < 2:
        yield None
        return
    with subprocess.Popen(
        COMMAND, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, encoding="utf-8"
    ) as process:
        try:
            yield process
        finally:
            process.kill()


@contextmanager
def helped(ledger: Ledger, process: Any) -> Iterator[None]:
    """Let a helper process fill the ledger with expected FLOPs while the context is active, then end the process.

    Experiments that the helper cannot read or does not reach are counted in this process. The helper changes only the
    time that counting takes.

    Args:
        ledger: the ledger to fill.
        process: the process of `helper`, or None for no help.
    """
    if process is None:
        yield
        return
    listening = threading.Thread(target=_listen, args=(process, ledger))
    listening.start()
    try:
        yield
    finally:
        process.kill()
        ledger.expected.put(None)
        listening.join()


def _listen(process: Any, ledger: Ledger) -> None:
    """Send expected experiments to the process one after the other, and store its answers in the ledger."""
    from attnlab.lab.study import serialize
    from attnlab.lab.study.user_code import user_defined

    # If the process fails or is ended, this process counts the rest.
    with suppress(OSError, ValueError):
        while item := ledger.expected.get():
            at, experiment = item
            # The process cannot read classes that a notebook or an experiment file defines.
            if at in ledger.known or user_defined(written := serialize.write(experiment)):
                continue
            print(json.dumps(written), file=process.stdin, flush=True)
            ledger.known.setdefault(at, int(process.stdout.readline()))


def main() -> None:
    """Read an experiment per line from standard input, and write its FLOPs as a line."""
    gc.disable()  # nearly all objects live as long as the process
    os.environ["XLA_PYTHON_CLIENT_PREALLOCATE"] = "false"  # nothing is computed, so no accelerator memory is needed
    from attnlab import registry
    from attnlab.lab.planning.ledger import Ledger
    from attnlab.lab.study import serialize

    ledger = Ledger()
    # Import the registries before the first experiment arrives.
    for name in registry.PLACES:
        registry.table(name)
    for line in sys.stdin:
        print(ledger.flops(serialize.read(json.loads(line))), flush=True)


if __name__ == "__main__":
    main()
