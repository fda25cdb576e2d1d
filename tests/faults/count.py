"""How many of so many cases held, and which did not."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Count:
    """Of so many cases those that failed, a line each that lets one repeat it; `note` says more about all of them.

    >>> print(Count(200, [], "67 of them inside a save"))
    200 of 200, 67 of them inside a save
    """

    of: int
    failures: list[str]
    note: str = ""

    @property
    def good(self) -> int:
        """How many held."""
        return self.of - len(self.failures)

    def __str__(self) -> str:
        return f"{self.good} of {self.of}" + (f", {self.note}" if self.note else "")


class Fault(Exception):
    """What did not hold, in one line."""


def tried(case: Callable[[int], Iterable[str]], count: int, seed: int, together: int = 1) -> tuple[list[str], Counter]:
    """Cases 0 … count−1, so many together: a line for each that raised, and how often each word was answered."""

    def outcome(n: int) -> tuple[list[str], list[str]]:
        try:
            return [], list(case(n))
        except Fault as fault:
            return [f"seed {seed}, case {n}: {fault}"], []
        except Exception as error:
            return [f"seed {seed}, case {n}: {type(error).__name__}: {error}"], []

    # One by one in the thread of who calls: signals go there alone.
    outcomes = [outcome(n) for n in range(count)] if together == 1 else _together(outcome, count, together)
    words = Counter(word for _, said in outcomes for word in said)
    return [line for failed, _ in outcomes for line in failed], words


def _together(outcome: Callable[[int], Any], count: int, together: int) -> list[Any]:
    pool = ThreadPoolExecutor(together)
    try:
        return list(pool.map(outcome, range(count)))
    finally:
        # Who is interrupted waits for the cases under way, so that no child outlives them, and begins no other.
        pool.shutdown(cancel_futures=True)
