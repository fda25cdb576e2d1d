"""The tables of the bench, for a terminal."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from attnlab.analysis.growth import Growth
from attnlab.analysis.measure import Spread
from attnlab.analysis.roofline import Machine
from attnlab.lab.bench.calls import BOTH, FORWARD
from attnlab.lab.bench.measuring import Measured, growths
from attnlab.lab.quantity import NONE, duration, large

if TYPE_CHECKING:
    from rich.table import Table

SHORT = {FORWARD: "fwd", BOTH: "fwd+bwd"}


def tables(found: Sequence[Measured], machine: Machine) -> list[Table]:
    """Time with its growth and its place under the roof; memory with its growth; and ours beside peers, if any."""
    kept = [_times(found, machine), _memory(found)]
    return [*kept, _beside(found)] if any(each.beside for each in found) else kept


def _times(found: Sequence[Measured], machine: Machine) -> Table:
    """At the longest sequence besides: FLOP a second, and which part that is of what the roof allows there."""
    fits = growths(found)

    def end(row: tuple, cells: dict[int, Measured]) -> list[str]:
        last = max((each for each in cells.values() if each.seconds), key=lambda each: each.T, default=None)
        rate = NONE if last is None or last.rate is None else large(last.rate, "FLOP/s")
        return [grows(fits[row]["seconds"]), rate, roof(last, machine)]

    title = (
        f"seconds; {machine.name}: {large(machine.flops, 'FLOP/s')} float32 product, "
        f"{large(machine.bandwidth, 'B/s')}, ridge {machine.ridge:.3g} FLOP/B"
    )
    return _table(title, found, ["grows as T^", "rate", "of the roof"], lambda each: duration(each.median), end)


def _memory(found: Sequence[Measured]) -> Table:
    fits = growths(found)
    title = "memory: temporaries and outputs, as the compiler estimates them"
    return _table(
        title,
        found,
        ["grows as T^", "compiling"],
        lambda each: large(each.memory, "B"),
        lambda row, cells: [grows(fits[row]["memory"]), duration(max(c.compile_seconds or 0 for c in cells.values()))],
    )


def _beside(found: Sequence[Measured]) -> Table:
    """A row for each peer of each mechanism: how many times longer it takes than ours."""
    split = [(peer, each) for each in found for peer in each.beside]
    lengths = sorted({each.T for _, each in split})
    rows: dict[tuple[str, ...], dict[int, Measured]] = {}
    for peer, each in split:
        rows.setdefault((peer, each.name, f"{each.mask} {SHORT[each.which]}"), {})[each.T] = each
    table = _empty("times longer than ours: median of turns (quartiles)")
    for n, head in enumerate(["peer", "beside", "", *(f"T={T}" for T in lengths)]):
        _column(table, head, right=n > 2)
    for row, cells in rows.items():
        peer = row[0]
        _row(table, [*row, *(ratio(cells[T].beside[peer].times) if T in cells else NONE for T in lengths)])
    return table


def _table(
    title: str,
    found: Sequence[Measured],
    ends: list[str],
    write: Callable[[Measured], str],
    end: Callable[[tuple, dict[int, Measured]], list[str]],
) -> Table:
    lengths = sorted({each.T for each in found})
    rows: dict[tuple, dict[int, Measured]] = {}
    for each in found:
        rows.setdefault((each.name, each.mask, each.which), {})[each.T] = each
    table = _empty(title)
    for n, head in enumerate(["mechanism", "", *(f"T={T}" for T in lengths), *ends]):
        _column(table, head, right=n > 1)
    for row, cells in rows.items():
        values = [write(cells[T]) if T in cells else NONE for T in lengths]
        _row(table, [row[0], f"{row[1]} {SHORT[row[2]]}", *values, *end(row, cells)])
    return table


def grows(fit: Growth | None) -> str:
    """An exponent with its interval.

    >>> grows(Growth(1.98, 1.9, 2.06, (1024, 2048))), grows(None)
    ('1.98 (1.90–2.06)', '–')
    """
    if fit is None:
        return NONE
    between = "" if fit.low is None or fit.high is None else f" ({fit.low:.2f}–{fit.high:.2f})"
    return f"{fit.exponent:.2f}{between}".replace("-", "−")


def ratio(times: Spread) -> str:
    """A ratio with its quartiles.

    >>> ratio(Spread(1.31, 1.28, 1.4))
    '1.31 (1.28–1.40)'
    """
    return f"{times.median:.2f} ({times.low:.2f}–{times.high:.2f})"


def roof(each: Measured | None, machine: Machine) -> str:
    """Which part of the attainable rate was reached, and what bounds it there."""
    if each is None or each.rate is None or each.intensity is None:
        return NONE
    return f"{100 * each.rate / machine.attainable(each.intensity):.0f}% {machine.side(each.intensity)}"


def _empty(title: str) -> Table:
    from rich.box import SIMPLE_HEAD
    from rich.table import Table
    from rich.text import Text

    settings: dict[str, Any] = {"title_justify": "left", "box": SIMPLE_HEAD, "show_edge": False, "pad_edge": False}
    return Table(title=Text(title), padding=(0, 1, 0, 0), **settings)


def _column(table: Table, head: str, right: bool) -> None:
    from rich.text import Text

    table.add_column(Text(head), justify="right" if right else "left", no_wrap=True)


def _row(table: Table, cells: Sequence[str]) -> None:
    from rich.text import Text

    table.add_row(*map(Text, cells))
