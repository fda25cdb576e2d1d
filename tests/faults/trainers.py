"""Two of `attnlab run` in one folder, begun at nearly the same moment, or the second while the first trains.

One must train, to the bits of the uninterrupted run and with no row twice; the other must leave with exit code 2 and
one line that names host, process and start of the first. Every second time the one that trains is killed by SIGKILL
while it holds the lock: the next must take it over, say so, and go on to those bits. In the end nobody holds it.
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
START = re.compile(r"\d\d:\d\d")  # the hour of one
APART = 0.2  # seconds between two starts, at most
MISSED = "never met"


def run(count: int, seed: int, folder: Path) -> Count:
    """Let `count` pairs meet, one pair after the other."""
    whole = uninterrupted()
    failures, words = tried(lambda n: _case(whole, n, seed, folder / str(n)), count, seed)
    missed = words.pop(MISSED, 0)
    note = "one runs; " + ", ".join(f"{times} {what}" for what, times in words.most_common())
    return Count(count - missed, failures, note + f"; {missed} more {MISSED}" * (missed > 0))


def _case(whole: Uninterrupted, n: int, seed: int, home: Path) -> Iterator[str]:
    """Let two meet in one folder. Yields how they met and what became of the first."""
    rng, out, late, killed = np.random.default_rng([seed, n]), home / "out", n % 3 == 2, n % 2 == 1
    with Child(command(out), home / "first", whole.cache) as first:
        if late:
            first.meets(lambda: first.said("saved at step"))
            # Else it might be done before the second has begun.
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
    """Raise Fault where one did not leave with exit code 2 and one line that names the other."""
    code, lines = loser.end(), loser.lines()
    if code != 2 or len(lines) != 1 or not _names(winner, lines[0]):
        raise Fault(f"beside {_who(winner)} the other left with exit {code} and said {lines}")


def _names(child: Child, line: str) -> bool:
    """Whether a line names the process, its host and the hour of its start."""
    return bool(re.search(rf"\b{child.process.pid}\b", line) and socket.gethostname() in line and START.search(line))


def _who(child: Child) -> str:
    return f"process {child.process.pid} on {socket.gethostname()}"
