"""The table of a study: the same numbers for the page and for the terminal."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from attnlab.lab.outcome import Estimate, Outcome, outcomes
from attnlab.lab.quantity import NONE, count, duration, large, measure, number, span, title

if TYPE_CHECKING:
    from rich.table import Table


SIDE_BY_SIDE = 3
PUBLISHED = "published"
NARROW = (PUBLISHED, "parameters", "FLOPs a step", "decoding state", "diverged lanes")


@dataclass(frozen=True)
class Cell:
    """A number as a person reads it; `note` stands smaller below it, `exact` is what the file holds."""

    text: str
    note: str = ""
    exact: str = ""


def results_table(folder: Path) -> Table:
    """The table of a study's folder (`OUT/<experiment>`), for a terminal. Raises FolderError.

    A few variants stand side by side, with all their numbers; more stand one below
    the other, with those for which eighty columns have room.
    """
    # rich costs time to import, and the page needs none of it.
    from rich.box import SIMPLE_HEAD
    from rich.table import Table
    from rich.text import Text

    found = outcomes(folder)
    heads, rows = table_of(found)
    if len(found) <= SIDE_BY_SIDE:
        lines = [["", *(o.name for o in found)], *zip(heads, *(map(_line, row) for row in rows), strict=True)]
    else:
        kept = [n for n, head in enumerate(heads) if n == 0 or head in NARROW]
        lines = [["", *(heads[n] for n in kept)]]
        lines += [[o.name, *(_short(row[n]) for n in kept)] for o, row in zip(found, rows, strict=True)]
    table = Table(
        title=Text(Path(folder).resolve().name),
        title_justify="left",
        box=SIMPLE_HEAD,
        show_edge=False,
        pad_edge=False,
    )
    # Text, not str: rich would take square brackets in a name for its own markup.
    for n, head in enumerate(lines[0]):
        whole = len(found) > SIDE_BY_SIDE and n < 2
        table.add_column(Text(head), justify="right" if n else "left", overflow="fold", no_wrap=whole)
    for line in lines[1:]:
        table.add_row(*map(Text, line))
    return table


def _line(cell: Cell) -> str:
    return f"{cell.text} ({cell.note})" if cell.note else cell.text


def _short(cell: Cell) -> str:
    # How far a run is that has not finished would take the room of the numbers.
    return _line(cell).split(", ")[0]


def table_of(found: list[Outcome]) -> tuple[list[str], list[list[Cell]]]:
    """Column heads and, for each outcome, its cells; one that has not finished has its state in the first."""
    metrics, published = _metrics(found), [_published(outcome) for outcome in found]
    beside = [PUBLISHED] if any(cell.text != NONE for cell in published) else []
    heads = [*map(title, metrics[:1]), *beside, *map(title, metrics[1:]), *COSTS, "diverged lanes"]
    rows = []
    for outcome, printed in zip(found, published, strict=True):
        if outcome.result is None:
            rows.append([Cell(state(outcome)), *[Cell(NONE)] * (len(heads) - 1)])
            continue
        cells = [_estimate(metric, outcome.metrics.get(metric)) for metric in metrics]
        cells[1:1] = [printed for _ in beside]
        cells += [cost(outcome.result) for cost in COSTS.values()]
        rows.append([*cells, _diverged(outcome)])
    return heads, rows


def state(outcome: Outcome) -> str:
    """How far a run is that has no result: "unfinished, 120 of 1,500 steps"."""
    if outcome.troubles:
        return "cannot be read"
    planned = outcome.planned_steps()
    of = f" of {count(planned)}" if planned else ""
    return f"unfinished, {count(outcome.last_step())}{of} steps"


def _steps(result: dict[str, Any]) -> Cell:
    each = result.get("seconds_per_step")
    return _cost(result, "steps", count, "" if number(each) is None else f"{duration(each)} each")


def _training(result: dict[str, Any]) -> Cell:
    compiling = result.get("compile_seconds")
    return _cost(result, "seconds", duration, "" if number(compiling) is None else f"{duration(compiling)} compiling")


COSTS: dict[str, Callable[[dict[str, Any]], Cell]] = {
    "parameters": lambda result: _cost(result, "parameters", count),
    "FLOPs a step": lambda result: _cost(result, "flops", lambda value: large(value, "FLOP")),
    "decoding state": lambda result: _cost(result, "state_bytes", lambda value: large(value, "B")),
    "steps": _steps,
    "training": _training,
    "peak memory": lambda result: _cost(result, "peak_memory", lambda value: large(value, "B")),
}


def _metrics(found: list[Outcome]) -> list[str]:
    """The metrics over all examples, the headline first; those of groups stand elsewhere."""
    named = dict.fromkeys(outcome.result["metric"] for outcome in found if outcome.result)
    others = dict.fromkeys(metric for outcome in found for metric in outcome.metrics if "." not in metric)
    return list(named | others)


def _estimate(metric: str, estimate: Estimate | None) -> Cell:
    if estimate is None:
        return Cell(NONE)
    if not estimate.sound:
        bad = sum(value is None for value in estimate.values)
        return Cell("failed", f"not finite in {bad} of {len(estimate.values)} seeds")
    exact = ", ".join(repr(value) for value in estimate.values)
    if estimate.low is None or estimate.high is None:
        note = "no interval from one seed" if len(estimate.values) == 1 else "no interval"
    else:
        note = span(metric, estimate.low, estimate.high)
    return Cell(measure(metric, estimate.mean), note, f"mean {estimate.mean!r}; by seed {exact}")


def _published(outcome: Outcome) -> Cell:
    """What others printed of the headline metric."""
    value = outcome.experiment.get("published")
    metric = outcome.result["metric"] if outcome.result else ""
    return Cell(measure(metric, value), "", "" if number(value) is None else repr(value))


def _cost(result: dict[str, Any], field: str, write: Callable[[Any], str], note: str = "") -> Cell:
    value = result.get(field)
    return Cell(write(value), note, "" if number(value) is None else repr(value))


def _diverged(outcome: Outcome) -> Cell:
    lanes = outcome.diverged()
    words = [f"seed {lane.get('seed')} at {lane.get('learning_rate')}, step {lane.get('step')}" for lane in lanes]
    of = f" of {outcome.lanes()}" if outcome.lanes() else ""
    return Cell(f"{len(lanes)}{of}", exact="; ".join(words))
