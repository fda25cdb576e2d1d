"""FLOPs of many experiments counted in two processes: the second takes what was expected last first."""

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

MANY = 3  # experiments that are worth a process, which takes seconds to start
COMMAND = [sys.executable, "-m", "attnlab.lab.planning.helper"]


@contextmanager
def helper() -> Iterator[Any]:
    """A process that counts, and from now on imports what that takes; None on one core."""
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
    """While it holds, a `helper` fills the ledger with what is expected of it; None: nobody does.

    It is ended with it. What it could not read, and all that it has not come to, is left to be counted here: but for
    time it changes nothing.
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
    """Ask the process for one experiment after the other, and write down what it answers."""
    from attnlab.lab.study import serialize
    from attnlab.lab.study.user_code import user_defined

    # Where it has failed, or is ended, the rest is counted here.
    with suppress(OSError, ValueError):
        while asked := ledger.expected.get():
            at, experiment = asked
            # Classes of a notebook, or of an experiment file, it could not read.
            if at in ledger.known or user_defined(written := serialize.write(experiment)):
                continue
            print(json.dumps(written), file=process.stdin, flush=True)
            ledger.known.setdefault(at, int(process.stdout.readline()))


def main() -> None:
    """Count what is asked on standard input, an experiment a line, and answer a number a line."""
    gc.disable()  # it makes little else than objects that live as long as it does
    os.environ["XLA_PYTHON_CLIENT_PREALLOCATE"] = "false"  # it computes nothing: no accelerator's memory is taken
    from attnlab import registry
    from attnlab.lab.planning.ledger import Ledger
    from attnlab.lab.study import serialize

    ledger = Ledger()
    # What experiments name is imported before the first is asked.
    for name in registry.PLACES:
        registry.table(name)
    for line in sys.stdin:
        print(ledger.flops(serialize.read(json.loads(line))), flush=True)


if __name__ == "__main__":
    main()
