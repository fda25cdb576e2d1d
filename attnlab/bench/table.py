"""The tables of the bench for a terminal."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from attnlab.analysis.growth import Growth
from attnlab.analysis.measure import Quartiles
from attnlab.analysis.roofline import Machine
from attnlab.bench.calls import BOTH, FORWARD
from attnlab.bench.measuring import Measured, growths
from attnlab.console.format import NONE, duration, large
from attnlab.console.tables import empty, fill

if TYPE_CHECKING:
    from rich.table import Table
    from rich.text import Text

SHORT = {FORWARD: "fwd", BOTH: "fwd+bwd"}


def tables(found: Sequence[Measured], machine: Machine) -> list[Table]:
    """Return the tables: time and memory with their growth, the roofline, and the comparison with peers, if any."""
    kept = [_times(found), *_missing(found), _memory(found), words(machine), _roof(found, machine)]
    return [*kept, _peers(found)] if any(each.peers for each in found) else kept


def _times(found: Sequence[Measured]) -> Table:
    fits = growths(found)
    write = lambda each: duration(each.median)
    return _table(
        "seconds, median of turns", found, ["grows as T^"], write, lambda row, _: [grows(fits[row]["seconds"])]
    )


def _missing(found: Sequence[Measured]) -> list[Text]:
    """Return a line for each mechanism that was not measured, with the reason."""
    from rich.text import Text

    missing = dict.fromkeys((each.name, each.mask, each.why_not) for each in found if each.why_not)
    return [Text(f"{name}, {mask}: {why_not}") for name, mask, why_not in missing]


def words(machine: Machine) -> Text:
    """Describe the machine's peak performance in a line."""
    from rich.text import Text

    peak = f"{large(machine.flops, 'FLOP/s')} float32 product, {large(machine.bandwidth, 'B/s')}"
    return Text(f"{machine.name}: {peak}, ridge {machine.ridge:.3g} FLOP/B")


def _roof(found: Sequence[Measured], machine: Machine) -> Table:
    """Return the work at the longest sequence, and the fraction of the roofline's limit that was reached."""
    last = {(each.name, f"{each.mask} {SHORT[each.which]}"): each for each in found if each.seconds}
    table = empty(
        "roofline at the longest T",
        ["mechanism", "", "T", "FLOP", "FLOP/B", "FLOP/s", "of the limit"],
    )
    for row, each in last.items():
        work = [large(each.flops, ""), NONE if each.intensity is None else f"{each.intensity:.3g}"]
        fill(
            table, [*row, f"{each.T}", *work, NONE if each.rate is None else large(each.rate, ""), roof(each, machine)]
        )
    return table


def _memory(found: Sequence[Measured]) -> Table:
    fits = growths(found)
    title = "memory: temporaries and outputs, as estimated by the compiler"
    return _table(
        title,
        found,
        ["grows as T^", "compiling"],
        lambda each: large(each.memory, "B"),
        lambda row, cells: [grows(fits[row]["memory"]), _compiling(cells)],
    )


def _compiling(cells: dict[int, Measured]) -> str:
    return duration(max((each.compile_seconds for each in cells.values() if each.compile_seconds), default=None))


def _peers(found: Sequence[Measured]) -> Table:
    """Return a table with a row for each length and a column for each peer."""
    found = [each for each in found if each.peers]
    peers = list(dict.fromkeys(peer for each in found for peer in each.peers))
    table = empty("time relative to ours, median of turns (quartiles)", ["mechanism", "", "T", *peers])
    for each in found:
        ratios = [ratio(each.peers[peer].times) if peer in each.peers else NONE for peer in peers]
        fill(table, [each.name, f"{each.mask} {SHORT[each.which]}", f"{each.T}", *ratios])
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
    table = empty(title, ["mechanism", "", *(f"T={T}" for T in lengths), *ends])
    for row, cells in rows.items():
        values = [write(cells[T]) if T in cells else NONE for T in lengths]
        fill(table, [row[0], f"{row[1]} {SHORT[row[2]]}", *values, *end(row, cells)])
    return table


def grows(fit: Growth | None) -> str:
    """Format an exponent with its interval.

    >>> grows(Growth(1.98, 1.9, 2.06, (1024, 2048))), grows(None)
    ('1.98 (1.90–2.06)', '–')
    """
    if fit is None:
        return NONE
    between = "" if fit.low is None or fit.high is None else f" ({fit.low:.2f}–{fit.high:.2f})"
    return f"{fit.exponent:.2f}{between}".replace("-", "−")


def ratio(times: Quartiles) -> str:
    """Format a ratio with its quartiles.

    >>> ratio(Quartiles(1.31, 1.28, 1.4))
    '1.31 (1.28–1.40)'
    """
    return f"{times.median:.2f} ({times.low:.2f}–{times.high:.2f})"


def roof(each: Measured | None, machine: Machine) -> str:
    """Format the fraction of the attainable rate that was reached, and what limits it."""
    if each is None or each.intensity is None or (share := each.share(machine)) is None:
        return NONE
    return f"{100 * share:.0f}% {machine.side(each.intensity)}"
