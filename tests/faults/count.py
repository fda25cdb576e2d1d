"""Counts how many cases passed and lists those that failed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Count:
    """The number of cases, one line for each failure, and a `note` about all cases.

    A failure line contains the information needed to repeat the case.

    >>> print(Count(200, [], "67 of them inside a save"))
    200 of 200, 67 of them inside a save
    """

    of: int
    failures: list[str]
    note: str = ""

    @property
    def good(self) -> int:
        """The number of cases that passed."""
        return self.of - len(self.failures)

    def __str__(self) -> str:
        return f"{self.good} of {self.of}" + (f", {self.note}" if self.note else "")


class Fault(Exception):
    """A requirement that did not hold, described in one line."""


def tried(case: Callable[[int], Iterable[str]], count: int, seed: int, together: int = 1) -> tuple[list[str], Counter]:
    """Runs cases 0 … count−1, `together` at a time. Returns one line per failure and the count of each word.

    A case returns words, or fails by raising an exception.
    """

    def outcome(n: int) -> tuple[list[str], list[str]]:
        try:
            return [], list(case(n))
        except Fault as fault:
            return [f"seed {seed}, case {n}: {fault}"], []
        except Exception as error:
            return [f"seed {seed}, case {n}: {type(error).__name__}: {error}"], []

    # One at a time, cases run in the calling thread, because only that thread receives signals.
    outcomes = [outcome(n) for n in range(count)] if together == 1 else _together(outcome, count, together)
    words = Counter(word for _, said in outcomes for word in said)
    return [line for failed, _ in outcomes for line in failed], words


def _together(outcome: Callable[[int], Any], count: int, together: int) -> list[Any]:
    pool = ThreadPoolExecutor(together)
    try:
        return list(pool.map(outcome, range(count)))
    finally:
        # After an interrupt, the running cases finish, so that no child outlives them. No further case begins.
        pool.shutdown(cancel_futures=True)
