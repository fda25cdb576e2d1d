"""Annotations of how often a loop or a branch runs, if the trace does not show it but the author knows."""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import AbstractContextManager
from fractions import Fraction

import jax

PATTERN = re.compile(r"trips-(\d+(?:-\d+)*)-of-(\d+)")  # for example trips-1-30-1-of-32


def annotate_trip_counts(counts: Sequence[int], of: int) -> AbstractContextManager:
    """Returns a context that annotates what is traced in it with how often it runs.

    A loop runs counts[0] / of rounds, and branch n of a switch counts[n] / of times. These are averages over all that
    run it. `attnlab.analysis.cost` uses them. Put the context directly around one `fori_loop`, `while_loop`, `switch`
    or `cond` (whose false branch is the first), without a `jit` between.

    Args:
      counts: numerators of the averages.
      of: their denominator.
    """
    return jax.named_scope("-".join(["trips", *map(str, counts), "of", str(of)]))


def annotated_trip_counts(name: str) -> list[Fraction] | None:
    """Returns the averages in the name of a traced operation.

    Args:
      name: a name stack. The innermost annotation counts.

    Returns:
      One average per branch, or None if there is no annotation.

    >>> annotated_trip_counts("vmap(while)/trips-1-3-of-4"), annotated_trip_counts("while")
    ([Fraction(1, 4), Fraction(3, 4)], None)
    >>> annotated_trip_counts("trips-table")
    """
    found = [match for part in re.split(r"[/()]", name) if (match := PATTERN.fullmatch(part))]
    if not found:
        return None
    counts, of = found[-1].groups()
    return [Fraction(int(count), int(of)) for count in counts.split("-")]
