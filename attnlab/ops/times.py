"""Annotations of how often a loop or a branch runs, if the trace does not show it but the author knows."""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import AbstractContextManager
from fractions import Fraction

import jax

SAID = re.compile(r"times-(\d+(?:-\d+)*)-of-(\d+)")  # as in times-1-30-1-of-32


def times(counts: Sequence[int], of: int) -> AbstractContextManager:
    """Returns a context that annotates what is traced in it with how often it runs.

    A loop runs counts[0] / of rounds, and branch n of a switch counts[n] / of times. These are averages over all that
    run it. `attnlab.analysis.cost` uses them. Put the context directly around one `fori_loop`, `while_loop`, `switch`
    or `cond` (whose false branch is the first), without a `jit` between.

    Args:
      counts: numerators of the averages.
      of: their denominator.
    """
    return jax.named_scope("-".join(["times", *map(str, counts), "of", str(of)]))


def said(name: str) -> list[Fraction] | None:
    """Returns the averages in the name of a traced operation.

    Args:
      name: a name stack. The innermost annotation counts.

    Returns:
      One average per branch, or None if there is no annotation.

    >>> said("vmap(while)/times-1-3-of-4"), said("while")
    ([Fraction(1, 4), Fraction(3, 4)], None)
    >>> said("times-table")
    """
    found = [match for part in re.split(r"[/()]", name) if (match := SAID.fullmatch(part))]
    if not found:
        return None
    counts, of = found[-1].groups()
    return [Fraction(int(count), int(of)) for count in counts.split("-")]
