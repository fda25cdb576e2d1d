"""The table of a study, shared by the page and the terminal."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from attnlab.console.escape import plain
from attnlab.console.format import NONE, count, duration, is_band, large, number
from attnlab.console.metric import Metric
from attnlab.lab.results.comparison import Comparison, comparison
from attnlab.lab.results.outcome import Outcome, by_metric, outcomes
from attnlab.system.settings import mixed

if TYPE_CHECKING:
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text


SIDE_BY_SIDE = 3
PUBLISHED, BAND = "published", "band"
VERDICT = "verdict"
RATE = "learning rate"
NARROW = (VERDICT, PUBLISHED, "decoding state", "diverged lanes")


@dataclass(frozen=True)
class Cell:
    """A formatted number."""

    text: str
    """The number, formatted for reading."""
    note: str = ""
    """A note that is shown smaller below the number."""
    exact: str = ""
    """The number as it is in the file."""


@dataclass(frozen=True)
class Sheet:
    """The table of the variants that share a primary metric."""

    title: str
    """The metric, in words."""
    variants: list[Outcome]
    """The variants."""
    heads: list[str]
    """The headings of the columns."""
    rows: list[list[Cell]]
    """The cells of each variant."""


def results_table(folder: Path) -> Group:
    """Return the tables of a study for a terminal, one for each sheet.

    A few variants are shown as columns, with all their numbers. More variants are shown as rows, with the numbers that
    fit into eighty columns.

    Args:
        folder: The folder of the study, `OUT/<experiment>`.

    Raises:
        FolderError: The folder contains no run.
    """
    # rich is slow to import, and the page does not need it.
    from rich.console import Group
    from rich.text import Text

    read = outcomes(folder)
    found, study = sheets(read), Path(folder).resolve().name
    titles = [f"{study}: {sheet.title}" if len(found) > 1 else study for sheet in found]
    # The tables are separated by an empty line.
    parts = [part for sheet, title in zip(found, titles, strict=True) for part in ("", _printed(sheet, title))]
    parts += [part for matrix in _matrices(comparison(read)) for part in ("", matrix)]
    return Group(*parts[1:], *(Text(plain(f"the runs used different settings: {line}")) for line in settings_of(read)))


def settings_of(found: list[Outcome]) -> list[str]:
    """Describe in which settings the finished runs differ, one line each. Empty if all settings agree."""
    return mixed({outcome.name: outcome.environment for outcome in found if outcome.result is not None})


def _printed(sheet: Sheet, title: str) -> Table:
    from rich.box import SIMPLE_HEAD
    from rich.table import Table
    from rich.text import Text

    heads, rows, found = sheet.heads, sheet.rows, sheet.variants
    if len(found) <= SIDE_BY_SIDE:
        lines = [["", *(o.name for o in found)], *zip(heads, *(map(_line, row) for row in rows), strict=True)]
    else:
        kept = [n for n, head in enumerate(heads) if n == 0 or head in NARROW]
        lines = [["", *(heads[n] for n in kept)]]
        # Notes and the progress of unfinished runs are omitted, because the numbers need the width.
        lines += [
            [o.name, _line(row[0]).split(", ")[0], *(row[n].text for n in kept[1:])]
            for o, row in zip(found, rows, strict=True)
        ]
    table = Table(title=Text(plain(title)), title_justify="left", box=SIMPLE_HEAD, show_edge=False, pad_edge=False)
    # Text, not str: rich would take square brackets in a name for its own markup.
    for n, head in enumerate(lines[0]):
        whole = len(found) > SIDE_BY_SIDE and (n < 2 or head == VERDICT)
        table.add_column(Text(plain(head)), justify="right" if n else "left", overflow="fold", no_wrap=whole)
    for line in lines[1:]:
        table.add_row(*(Text(plain(cell)) for cell in line))
    return table


def _matrices(compared: Comparison) -> list[Table | Text]:
    """Return the matrices of verdicts and their legend, if all pairs are compared."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table
    from rich.text import Text

    if compared.pairs is None:
        return []
    made: list[Table | Text] = []
    for names in compared.pairs.groups:
        table = Table(box=SIMPLE_HEAD, show_edge=False, pad_edge=False)
        # The columns are numbered, because many names would not fit.
        for n, head in enumerate(["", *map(str, range(1, len(names) + 1))]):
            table.add_column(head, justify="center" if n else "left", no_wrap=True)
        for n, one in enumerate(names, 1):
            table.add_row(
                *(Text(plain(cell)) for cell in (f"{n} {one}", *(compared.pairs.sign(one, two) for two in names)))
            )
        made.append(table)
    return [*made, Text(compared.pairs.legend())] if made else []


def _line(cell: Cell) -> str:
    return f"{cell.text} ({cell.note})" if cell.note else cell.text


def sheets(found: list[Outcome]) -> list[Sheet]:
    """Return the sheets of a study, one for each primary metric. Variants that are not begun are omitted.

    The first cell of an unfinished variant is its state. If the study has several metrics, unfinished variants are on a
    separate last sheet, because their metric is unknown.
    """
    compared = comparison(found)
    groups = by_metric(outcome for outcome in found if outcome.begun)
    return [_sheet(metric, some, compared) if metric.name else _unfinished(some) for metric, some in groups.items()]


def _unfinished(found: list[Outcome]) -> Sheet:
    return Sheet("not finished", found, ["state"], [[Cell(state(outcome))] for outcome in found])


def _sheet(metric: Metric, found: list[Outcome], compared: Comparison) -> Sheet:
    columns = [(each.title, partial(_estimate, each)) for each in _metrics(metric, found)]
    # A column without any value is omitted.
    optional: list[tuple[str, Callable[[Outcome], Cell]]] = []
    judged = any(compared.word(outcome) for outcome in found)
    optional += [(VERDICT, lambda outcome: Cell(compared.word(outcome) or NONE))] if judged else []
    optional += [(PUBLISHED, _published)] if any(_published(outcome).text != NONE for outcome in found) else []
    optional += [(BAND, _band)] if any(_band(outcome).text != NONE for outcome in found) else []
    done = [outcome for outcome in found if outcome.result is not None]
    optional += [(RATE, _rate)] if any(len(outcome.rates) > 1 for outcome in done) else []
    costs = [(head, cell) for head, cell in COSTS.items() if any(cell(outcome).text != NONE for outcome in done)]
    columns = [*columns[:1], *optional, *columns[1:], *costs, ("diverged lanes", _diverged)]
    none = [Cell(NONE)] * (len(columns) - 1)
    rows = [
        [Cell(state(outcome)), *none] if outcome.result is None else [cell(outcome) for _, cell in columns]
        for outcome in found
    ]
    return Sheet(metric.title, found, [head for head, _ in columns], rows)


def state(outcome: Outcome) -> str:
    """Describe the progress of a run without a result, for example "unfinished, 120 of 1,500 steps"."""
    if outcome.troubles:
        return "cannot be read"
    if not outcome.begun:
        return "not begun"
    planned = outcome.planned_steps()
    of = f" of {count(planned)}" if planned else ""
    return f"unfinished, {count(outcome.last_step())}{of} steps"


def _rate(outcome: Outcome) -> Cell:
    """The learning rate of the reported lanes, and among how many it was chosen."""
    rate = _known(outcome, "learning_rate")
    tried = len(outcome.rates)
    return Cell(NONE) if rate is None else Cell(f"{rate:g}", f"of {tried}" if tried > 1 else "", repr(rate))


def _training_flops(outcome: Outcome) -> Cell:
    """Format the FLOPs of one lane. If lanes stopped early, it is the mean over them."""
    value, a_step = outcome.training_flops(), _known(outcome, "flops")
    note = "" if a_step is None else f"{large(a_step, 'FLOP')} per step"
    return Cell(large(value, "FLOP"), note, "" if value is None else repr(value))


def _memory(outcome: Outcome) -> Cell:
    """Format the compiler's estimate, with the peak memory of the whole process as the note."""
    held = _known(outcome, "peak_memory")
    return _cost("memory_bytes", _bytes, "" if held is None else f"{_bytes(held)} process")(outcome)


def _step(outcome: Outcome) -> Cell:
    steps = _known(outcome, "steps")
    return _cost("seconds_per_step", duration, "" if steps is None else f"{count(steps)} steps")(outcome)


def _training(outcome: Outcome) -> Cell:
    # Programs that were compiled in the background took no time of the training.
    compiling = _known(outcome, "compile_seconds") or 0.0
    return _cost("seconds", duration, f"{duration(compiling)} compiling" if compiling > 0 else "")(outcome)


def _cost(field: str, write: Callable[[object], str], note: str = "") -> Callable[[Outcome], Cell]:
    """Return a function that formats a field of `result.json`. Older folders may lack the field."""

    def cell(outcome: Outcome) -> Cell:
        value = (outcome.result or {}).get(field)
        return Cell(write(value), note, "" if number(value) is None else repr(value))

    return cell


def _known(outcome: Outcome, field: str) -> float | None:
    return number((outcome.result or {}).get(field))


def _bytes(value: object) -> str:
    return large(value, "B")


COSTS: dict[str, Callable[[Outcome], Cell]] = {
    "parameters": _cost("parameters", count),
    "training FLOPs": _training_flops,
    "decoding state": _cost("state_bytes", _bytes),
    "peak memory": _memory,
    "time per step": _step,
    "training time": _training,
}


def _metrics(primary: Metric, found: list[Outcome]) -> list[Metric]:
    """List the metrics over all examples, the primary metric first. Metrics of groups have a section of their own."""
    metrics = {primary.name: primary}
    for outcome in found:
        for name in outcome.metrics:
            if "." not in name:
                metrics.setdefault(name, outcome.declared(name))
    return [*metrics.values()]


def _estimate(metric: Metric, outcome: Outcome) -> Cell:
    estimate = outcome.metrics.get(metric.name)
    if estimate is None:
        return Cell(NONE)
    if not estimate.sound:
        bad = sum(value is None for value in estimate.values)
        return Cell("failed", f"not finite in {bad} of {len(estimate.values)} seeds")
    exact = ", ".join(repr(value) for value in estimate.values)
    return Cell(
        metric.format(estimate.mean), estimate.format_interval(metric), f"mean {estimate.mean!r}; by seed {exact}"
    )


def _whole(outcome: Outcome) -> bool:
    """Return whether the run has a result that is not a preview. Previews are not compared with published numbers."""
    return bool(outcome.result) and not outcome.experiment.get("quick")


def _published(outcome: Outcome) -> Cell:
    """Format the published value of the primary metric."""
    value = outcome.experiment.get("published") if _whole(outcome) else None
    return Cell(outcome.primary_metric.format(value), "", "" if number(value) is None else repr(value))


def _band(outcome: Outcome) -> Cell:
    """Format the expected range of the primary metric, and whether the mean over seeds is in it."""
    band, estimate = outcome.experiment.get("band"), outcome.primary
    if not _whole(outcome) or band is None or not is_band(band):
        return Cell(NONE)
    least, most = band
    ends = [outcome.primary_metric.format(end) for end in (least, most) if end is not None]
    words = " to ".join(ends) if len(ends) == 2 else f"{'≥' if most is None else '≤'} {ends[0]}"
    mean = estimate.mean if estimate is not None and estimate.sound else math.nan
    inside = (least is None or mean >= least) and (most is None or mean <= most)
    return Cell(words, "inside" if inside else "outside", repr(band))


def _diverged(outcome: Outcome) -> Cell:
    lanes = outcome.diverged_lanes()
    words = [f"seed {lane.get('seed')} at {lane.get('learning_rate')}, step {lane.get('step')}" for lane in lanes]
    of = f" of {outcome.lanes()}" if outcome.lanes() else ""
    return Cell(f"{len(lanes)}{of}", exact="; ".join(words))
