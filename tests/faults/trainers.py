"""Starts `attnlab run` twice in one folder, at nearly the same moment or the second while the first trains.

One process must train to the same bits as the uninterrupted run, with no row twice. The other must exit with code 2 and
one line that names the host, process and start of the first. In every second case, SIGKILL ends the training process
while it holds the lock. The next process must take over the lock, say so, and continue to the same bits. In the end no
process may hold the lock.
"""

from __future__ import annotations

import re
import signal
import socket
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from tests.faults.child import Child
from tests.faults.count import Count, Fault, tried
from tests.faults.uninterrupted import Uninterrupted, command, folder, uninterrupted

FULL, SHORT = 50, 3
START = re.compile(r"\d\d:\d\d")  # the time at which a process started
APART = 0.2  # largest number of seconds between two starts
MISSED = "never met"


def run(count: int, seed: int, folder: Path) -> Count:
    """Runs `count` pairs of processes, one pair after the other."""
    whole = uninterrupted()
    failures, words = tried(lambda n: _case(whole, n, seed, folder / str(n)), count, seed)
    missed = words.pop(MISSED, 0)
    note = "one runs; " + ", ".join(f"{times} {what}" for what, times in words.most_common())
    return Count(count - missed, failures, note + f"; {missed} more {MISSED}" * (missed > 0))


def _case(whole: Uninterrupted, n: int, seed: int, home: Path) -> Iterator[str]:
    """Starts two processes in one folder. Yields when they collided, and whether the first lock was taken over."""
    rng, out, late, killed = np.random.default_rng([seed, n]), home / "out", n % 3 == 2, n % 2 == 1
    with Child(command(out), home / "first", whole.cache) as first:
        if late:
            first.meets(lambda: first.said("saved at step"))
            # Otherwise it might end before the second has started.
            first.hit(signal.SIGSTOP)
        else:
            first.survives(rng.random() * APART)
        with Child(command(out), home / "second", whole.cache) as second:
            first.meets(lambda: second.process.poll() is not None)
            first.hit(signal.SIGCONT)
            winner, loser = (first, second) if first.process.poll() is None else (second, first)
            if loser.end() == 0:
                yield MISSED
                return
            _check_refused(loser, winner)
            yield "met in training" if late else "met at the start"
            taken = killed and winner.meets(lambda: winner.said("saved at step")) and winner.survives(rng.random())
            if taken:
                winner.hit(signal.SIGKILL)
                winner.end()
            else:
                winner.ends_well()
    if taken:
        with Child(command(out), home / "third", whole.cache) as third:
            third.ends_well()
        if not any(_names(winner, line) for line in third.lines()):
            raise Fault(f"the lock of killed {_who(winner)} was taken over without a word: {third.lines()}")
        yield "killed and taken over"
    whole.compare(out)
    if words := (folder(out) / "lock").read_text():
        raise Fault(f"nobody trains any more, and the lock says {words!r}")


def _check_refused(loser: Child, winner: Child) -> None:
    """Raises Fault unless a process exited with code 2 and one line that names the other process."""
    code, lines = loser.end(), loser.lines()
    if code != 2 or len(lines) != 1 or not _names(winner, lines[0]):
        raise Fault(f"beside {_who(winner)} the other left with exit {code} and said {lines}")


def _names(child: Child, line: str) -> bool:
    """Returns whether a line names the process, its host and the time of its start."""
    return bool(re.search(rf"\b{child.process.pid}\b", line) and socket.gethostname() in line and START.search(line))


def _who(child: Child) -> str:
    return f"process {child.process.pid} on {socket.gethostname()}"
