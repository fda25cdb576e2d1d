"""FLOPs of many experiments counted from both ends: a second process takes the last ones first."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

from attnlab import registry
from attnlab.lab import configuration
from attnlab.lab.cores import cores
from attnlab.lab.describe import Ledger
from attnlab.lab.own import own
from attnlab.lab.study import Experiment

MANY = 3  # experiments that are worth a process, which takes seconds to start
COMMAND = [sys.executable, "-m", "attnlab.lab.counting"]


@contextmanager
def helped(ledger: Ledger, most: int) -> Iterator[Any]:
    """While it holds, another process may fill the ledger: what it yields is told the experiments, once.

    `most` is how many there will be. Of few, or on one core, there is none. What it could not read, and all that it has
    not come to, is left to be counted here: but for time it changes nothing.
    """
    if most < MANY or len(cores()) < 2:
        yield lambda experiments: None
        return
    with subprocess.Popen(
        COMMAND, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, encoding="utf-8"
    ) as process:
        listening: list[threading.Thread] = []

        def tell(experiments):
            listening.append(threading.Thread(target=_listen, args=(process, ledger, [*experiments][::-1])))
            listening[0].start()

        try:
            yield tell
        finally:
            process.kill()
            for thread in listening:
                thread.join()


def _listen(process: Any, ledger: Ledger, experiments: Sequence[Experiment]) -> None:
    """Tell the process, and write down what it answers, line by line in the same order."""
    # Classes of a notebook, or of an experiment file, it could not read.
    written = {each: configuration.write(each) for each in experiments}
    told = {each: text for each, text in written.items() if not own(text)}
    # Where it has failed, or is ended, the rest is counted here.
    with suppress(OSError, ValueError):
        with process.stdin as pipe:
            pipe.write(json.dumps([*told.values()]))
        for experiment, line in zip(told, process.stdout, strict=False):
            ledger.known.setdefault(ledger.at(experiment), int(line))


def main() -> None:
    """Count what is told on standard input, and answer a number a line."""
    os.environ["XLA_PYTHON_CLIENT_PREALLOCATE"] = "false"  # it computes nothing: no accelerator's memory is taken
    ledger = Ledger()
    # What experiments name is imported while they are still being matched.
    for name in registry.PLACES:
        registry.table(name)
    for written in json.load(sys.stdin):
        print(ledger.flops(configuration.read(written)), flush=True)


if __name__ == "__main__":
    main()
