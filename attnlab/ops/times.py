"""How often a loop runs, and a branch is taken, said where a trace does not show it but who wrote it knows."""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import AbstractContextManager
from fractions import Fraction

import jax

SAID = re.compile(r"times-(\d+(?:-\d+)*)-of-(\d+)")  # as in times-1-30-1-of-32


def times(counts: Sequence[int], of: int) -> AbstractContextManager:
    """Name what is traced within by how often it runs: a loop counts[0] / of rounds, a switch each branch counts / of.

    To be put directly around one `fori_loop`, `while_loop`, `switch` or `cond` (whose false branch is the first), with
    no `jit` between. The numbers are averages over all that run it; `attnlab.analysis.cost` counts by them.
    """
    return jax.named_scope("-".join(["times", *map(str, counts), "of", str(of)]))


def said(name: str) -> list[Fraction] | None:
    """The averages in the name of a traced operation, of the innermost that says any; None where none does.

    >>> said("vmap(while)/times-1-3-of-4"), said("while")
    ([Fraction(1, 4), Fraction(3, 4)], None)
    >>> said("times-table")
    """
    found = [match for part in re.split(r"[/()]", name) if (match := SAID.fullmatch(part))]
    if not found:
        return None
    counts, of = found[-1].groups()
    return [Fraction(int(count), int(of)) for count in counts.split("-")]
