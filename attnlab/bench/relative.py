"""Mechanisms side by side in the same turns: how many times longer each takes than one of them, and needs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from attnlab.analysis.measure import Program, Spread, timed, times_faster
from attnlab.bench.calls import prepare
from attnlab.bench.measuring import BenchConfig
from attnlab.bench.table import ratio
from attnlab.console.format import NONE
from attnlab.console.tables import empty, fill

if TYPE_CHECKING:
    from rich.table import Table


@dataclass(frozen=True)
class Relative:
    """One mechanism at one length: its seconds, and time and memory in units of the base's.

    `mask` is the one it was measured under: the causal one where it refuses the other.
    """

    name: str
    mask: str
    T: int
    seconds: tuple[float, ...]
    times: Spread
    memory: float | None


def side_by_side(
    plan: BenchConfig, base: str, which: str, note: Callable[[str], Any] = lambda text: None
) -> list[Relative]:
    """Every mechanism of the plan at every length beside `base`, all in the same turns, under the plan's first mask.

    One that refuses that mask takes its next. Raises ValueError where `base` is not in the plan, or refuses all.
    """
    if base not in plan.mechanisms:
        raise ValueError(f"{base=} is not among the mechanisms: {', '.join(plan.mechanisms)}")
    found = []
    for T in plan.lengths:
        programs, masks = {}, {}
        for name in plan.mechanisms:
            if (made := _first(plan, name, which, T)) is not None:
                masks[name], programs[name] = made
        if base not in programs:
            raise ValueError(f"{base=} refuses {', '.join(plan.masks)}")
        seconds = timed(programs, plan.repeat)
        unit = programs[base].memory
        for name, program in programs.items():
            memory = program.memory / unit if program.memory and unit else None
            times = times_faster(seconds[base], seconds[name])
            found.append(Relative(name, masks[name], T, tuple(seconds[name]), times, memory))
        note(f"T={T}: {len(programs)} mechanisms, {which}")
    return found


def _first(plan: BenchConfig, name: str, which: str, T: int) -> tuple[str, Program] | None:
    for mask in plan.masks:
        program = prepare(plan.mechanisms[name], mask, which, T, plan.heads, plan.width)
        if program is not None:
            return mask, program
    return None


def relative_table(found: Sequence[Relative], base: str, which: str) -> Table:
    """A row a mechanism: time in units of the base's at every length, and memory at the longest."""
    lengths = sorted({each.T for each in found})
    rows: dict[tuple[str, str], dict[int, Relative]] = {}
    for each in found:
        rows.setdefault((each.name, each.mask), {})[each.T] = each
    table = empty(
        f"{which}: times as long as {base}, median of turns (quartiles); memory as the compiler estimates it",
        ["mechanism", "", *(f"T={T}" for T in lengths), f"memory, T={lengths[-1]}"],
    )
    for row, cells in rows.items():
        last = cells.get(lengths[-1])
        times = [ratio(cells[T].times) if T in cells else NONE for T in lengths]
        fill(table, [*row, *times, NONE if last is None or last.memory is None else f"{last.memory:.3f}"])
    return table
