"""The table of a study: the same numbers for the page and for the terminal."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from attnlab.console.escape import plain
from attnlab.console.format import NONE, count, duration, is_band, large, measure, number, title
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
    """A number as a person reads it; `note` stands smaller below it, `exact` is what the file holds."""

    text: str
    note: str = ""
    exact: str = ""


@dataclass(frozen=True)
class Sheet:
    """The variants of one headline metric (`title`, in words), the heads of their columns, and of each its cells."""

    title: str
    variants: list[Outcome]
    heads: list[str]
    rows: list[list[Cell]]


def results_table(folder: Path) -> Group:
    """The tables of a study's folder (`OUT/<experiment>`), for a terminal: one for each sheet. Raises FolderError.

    A few variants stand side by side, with all their numbers; more stand one below
    the other, with those for which eighty columns have room.
    """
    # rich costs time to import, and the page needs none of it.
    from rich.console import Group
    from rich.text import Text

    there = outcomes(folder)
    found, study = sheets(there), Path(folder).resolve().name
    titles = [f"{study}: {sheet.title}" if len(found) > 1 else study for sheet in found]
    # An empty line between two.
    parts = [part for sheet, title in zip(found, titles, strict=True) for part in ("", _printed(sheet, title))]
    parts += [part for matrix in _matrices(comparison(there)) for part in ("", matrix)]
    return Group(*parts[1:], *(Text(plain(f"made under different settings: {line}")) for line in settings_of(there)))


def settings_of(found: list[Outcome]) -> list[str]:
    """Under what different settings the finished runs were made, a line each; empty where all settings agree."""
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
        # Of the rest the notes, and how far a run is that has not finished, would take the room of the numbers.
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


def _matrices(said: Comparison) -> list[Table | Text]:
    """Where all pairs are compared, each group of variants against each other, and what the signs mean."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table
    from rich.text import Text

    if said.pairs is None:
        return []
    made: list[Table | Text] = []
    for names in said.pairs.groups:
        table = Table(box=SIMPLE_HEAD, show_edge=False, pad_edge=False)
        # The columns have numbers: forty names would have no room.
        for n, head in enumerate(["", *map(str, range(1, len(names) + 1))]):
            table.add_column(head, justify="center" if n else "left", no_wrap=True)
        for n, one in enumerate(names, 1):
            table.add_row(
                *(Text(plain(cell)) for cell in (f"{n} {one}", *(said.pairs.sign(one, two) for two in names)))
            )
        made.append(table)
    return [*made, Text(said.pairs.legend())] if made else []


def _line(cell: Cell) -> str:
    return f"{cell.text} ({cell.note})" if cell.note else cell.text


def sheets(found: list[Outcome]) -> list[Sheet]:
    """The sheets of a study, one for each headline metric. Those not begun are on none.

    One that has not finished has its state in the first cell; where several metrics are named, it is on a last sheet,
    for its metric is not known.
    """
    said = comparison(found)
    groups = by_metric(outcome for outcome in found if outcome.begun)
    return [_sheet(metric, some, said) if metric else _unfinished(some) for metric, some in groups.items()]


def _unfinished(found: list[Outcome]) -> Sheet:
    return Sheet("not finished", found, ["state"], [[Cell(state(outcome))] for outcome in found])


def _sheet(metric: str, found: list[Outcome], said: Comparison) -> Sheet:
    columns = [(title(name), partial(_estimate, name)) for name in _metrics(metric, found)]
    # A column in which no variant has anything to say would only take room.
    beside: list[tuple[str, Callable[[Outcome], Cell]]] = []
    told = any(said.word(outcome) for outcome in found)
    beside += [(VERDICT, lambda outcome: Cell(said.word(outcome) or NONE))] if told else []
    beside += [(PUBLISHED, _published)] if any(_published(outcome).text != NONE for outcome in found) else []
    beside += [(BAND, _band)] if any(_band(outcome).text != NONE for outcome in found) else []
    done = [outcome for outcome in found if outcome.result is not None]
    beside += [(RATE, _rate)] if any(len(outcome.rates) > 1 for outcome in done) else []
    costs = [(head, cell) for head, cell in COSTS.items() if any(cell(outcome).text != NONE for outcome in done)]
    columns = [*columns[:1], *beside, *columns[1:], *costs, ("diverged lanes", _diverged)]
    none = [Cell(NONE)] * (len(columns) - 1)
    rows = [
        [Cell(state(outcome)), *none] if outcome.result is None else [cell(outcome) for _, cell in columns]
        for outcome in found
    ]
    return Sheet(title(metric), found, [head for head, _ in columns], rows)


def state(outcome: Outcome) -> str:
    """How far a run is that has no result: "unfinished, 120 of 1,500 steps"."""
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
    """Of one lane; those that stopped early took less, and it is their mean."""
    value, a_step = outcome.training_flops(), _known(outcome, "flops")
    note = "" if a_step is None else f"{large(a_step, 'FLOP')} a step"
    return Cell(large(value, "FLOP"), note, "" if value is None else repr(value))


def _memory(outcome: Outcome) -> Cell:
    """By the compiler's estimate, over the most that the whole process ever held."""
    held = _known(outcome, "peak_memory")
    return _cost("memory_bytes", _bytes, "" if held is None else f"{_bytes(held)} process")(outcome)


def _step(outcome: Outcome) -> Cell:
    steps = _known(outcome, "steps")
    return _cost("seconds_per_step", duration, "" if steps is None else f"{count(steps)} steps")(outcome)


def _training(outcome: Outcome) -> Cell:
    compiling = _known(outcome, "compile_seconds")
    return _cost("seconds", duration, "" if compiling is None else f"{duration(compiling)} compiling")(outcome)


def _cost(field: str, write: Callable[[Any], str], note: str = "") -> Callable[[Outcome], Cell]:
    """A number of `result.json`, as it is written; older folders may lack it."""

    def cell(outcome: Outcome) -> Cell:
        value = (outcome.result or {}).get(field)
        return Cell(write(value), note, "" if number(value) is None else repr(value))

    return cell


def _known(outcome: Outcome, field: str) -> float | None:
    return number((outcome.result or {}).get(field))


def _bytes(value: Any) -> str:
    return large(value, "B")


COSTS: dict[str, Callable[[Outcome], Cell]] = {
    "parameters": _cost("parameters", count),
    "training FLOPs": _training_flops,
    "decoding state": _cost("state_bytes", _bytes),
    "peak memory": _memory,
    "a step": _step,
    "training": _training,
}


def _metrics(headline: str, found: list[Outcome]) -> list[str]:
    """The metrics over all examples, the headline first; those of groups stand elsewhere."""
    return list(dict.fromkeys([headline, *(name for o in found for name in o.metrics if "." not in name)]))


def _estimate(metric: str, outcome: Outcome) -> Cell:
    estimate = outcome.metrics.get(metric)
    if estimate is None:
        return Cell(NONE)
    if not estimate.sound:
        bad = sum(value is None for value in estimate.values)
        return Cell("failed", f"not finite in {bad} of {len(estimate.values)} seeds")
    exact = ", ".join(repr(value) for value in estimate.values)
    return Cell(measure(metric, estimate.mean), estimate.reach(metric), f"mean {estimate.mean!r}; by seed {exact}")


def _whole(outcome: Outcome) -> bool:
    """Whether there is a result, and of more than a preview, whose numbers stand beside no others."""
    return bool(outcome.result) and not outcome.experiment.get("quick")


def _published(outcome: Outcome) -> Cell:
    """What others printed of the headline metric."""
    value = outcome.experiment.get("published") if _whole(outcome) else None
    return Cell(measure(outcome.metric, value), "", "" if number(value) is None else repr(value))


def _band(outcome: Outcome) -> Cell:
    """Where the headline metric is to come out, and whether the mean over seeds does."""
    band, estimate = outcome.experiment.get("band"), outcome.headline
    if not _whole(outcome) or band is None or not is_band(band):
        return Cell(NONE)
    least, most = band
    ends = [measure(outcome.metric, end) for end in (least, most) if end is not None]
    words = " to ".join(ends) if len(ends) == 2 else f"{'≥' if most is None else '≤'} {ends[0]}"
    mean = estimate.mean if estimate is not None and estimate.sound else math.nan
    held = (least is None or mean >= least) and (most is None or mean <= most)
    return Cell(words, "held" if held else "missed", repr(band))


def _diverged(outcome: Outcome) -> Cell:
    lanes = outcome.diverged()
    words = [f"seed {lane.get('seed')} at {lane.get('learning_rate')}, step {lane.get('step')}" for lane in lanes]
    of = f" of {outcome.lanes()}" if outcome.lanes() else ""
    return Cell(f"{len(lanes)}{of}", exact="; ".join(words))
