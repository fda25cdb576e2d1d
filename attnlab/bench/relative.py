"""Compare mechanisms in turns: the time and memory of each relative to one of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from attnlab.analysis.measure import Program, Quartiles, timed, times_faster
from attnlab.bench.calls import prepare
from attnlab.bench.measuring import BenchConfig
from attnlab.bench.table import ratio
from attnlab.console.format import NONE
from attnlab.console.tables import empty, fill

if TYPE_CHECKING:
    from rich.table import Table


@dataclass(frozen=True)
class Relative:
    """One mechanism at one length, relative to the base."""

    name: str
    """The name of the mechanism."""
    mask: str
    """The mask it was measured under: the first of the plan that it supports."""
    T: int
    """The sequence length."""
    seconds: tuple[float, ...]
    """The seconds of each turn."""
    times: Quartiles
    """How many times longer it took than the base."""
    memory: float | None
    """Its memory as a multiple of the base's, or None if unknown."""


def side_by_side(
    plan: BenchConfig, base: str, which: str, note: Callable[[str], None] = lambda text: None
) -> list[Relative]:
    """Measure every mechanism of the plan at every length, all in the same turns, relative to `base`.

    Each mechanism is measured under the first mask of the plan that it supports.

    Args:
        plan: What to measure.
        base: The name of the mechanism that the others are compared with.
        which: The pass, "forward" or "forward+backward".
        note: Is called with a line about each length.

    Raises:
        ValueError: `base` is not in the plan, or supports none of the masks.
    """
    if base not in plan.mechanisms:
        raise ValueError(f"{base=} is not one of the mechanisms {', '.join(plan.mechanisms)}")
    found = []
    for T in plan.lengths:
        programs, masks = {}, {}
        for name in plan.mechanisms:
            if (made := _first(plan, name, which, T)) is not None:
                masks[name], programs[name] = made
        if base not in programs:
            raise ValueError(f"{base=} does not support the masks {', '.join(plan.masks)}")
        seconds = timed(programs, plan.repeat)
        unit = programs[base].memory
        for name, program in programs.items():
            memory = program.memory / unit if program.memory and unit else None
            times = times_faster(seconds[base], seconds[name])
            found.append(Relative(name, masks[name], T, tuple(seconds[name]), times, memory))
        note(f"T={T}: {len(programs)} mechanisms, {which}")
    return found


def _first(plan: BenchConfig, name: str, which: str, T: int) -> tuple[str, Program] | None:
    """Compile a mechanism under the first mask that it supports. Returns None if there is no such mask."""
    for mask in plan.masks:
        program = prepare(plan.mechanisms[name], mask, which, T, plan.heads, plan.width)
        if program is not None:
            return mask, program
    return None


def relative_table(found: Sequence[Relative], base: str, which: str) -> Table:
    """Return a table with a row for each mechanism: relative time at every length, relative memory at the longest.

    Args:
        found: The measurements, at least one.
        base: The name of the mechanism that the others are compared with.
        which: The pass, as the title names it.
    """
    lengths = sorted({each.T for each in found})
    rows: dict[tuple[str, str], dict[int, Relative]] = {}
    for each in found:
        rows.setdefault((each.name, each.mask), {})[each.T] = each
    table = empty(
        f"{which}: time relative to {base}, median of turns (quartiles); memory as estimated by the compiler",
        ["mechanism", "", *(f"T={T}" for T in lengths), f"memory, T={lengths[-1]}"],
    )
    for row, cells in rows.items():
        last = cells.get(lengths[-1])
        times = [ratio(cells[T].times) if T in cells else NONE for T in lengths]
        fill(table, [*row, *times, NONE if last is None or last.memory is None else f"{last.memory:.3f}"])
    return table
