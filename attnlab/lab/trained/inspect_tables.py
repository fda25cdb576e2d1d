"""The results of `inspect` as tables of text, and these tables for a terminal."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from attnlab.console.escape import plain
from attnlab.console.format import NONE
from attnlab.console.tables import empty, fill

if TYPE_CHECKING:
    from rich.table import Table

MOST = 6  # checkpoints that fit into a terminal of eighty columns


@dataclass(frozen=True)
class FigureTable:
    """A table in plain text."""

    title: str
    """The title."""
    heads: list[str]
    """The headings of the columns."""
    rows: list[list[str]]
    """The cells, row by row."""
    words: int = 1
    """How many of the first columns hold words. The others hold numbers."""
    notes: Sequence[str] = ()
    """Lines to show below the table."""


def tables(found: dict[str, Any]) -> list[Any]:
    """Convert the result of `attnlab.lab.trained.inspect.inspect` to renderables for a terminal."""
    from rich.text import Text

    made: list[Any] = [Text(plain(note)) for note in found["notes"]]
    looked = list(attentions(found).values())
    for grid in [*looked, *training(found, MOST), *distance(found)]:
        made += ["", _table(grid)]
        made += [Text(plain(note), style="dim") for note in grid.notes]
        if looked and grid is looked[-1]:
            made += [Text(line, style="dim") for line in legend(found)]
    return made


def legend(found: dict[str, Any]) -> list[str]:
    """Explain the columns of the statistics that are present, one line each."""
    listed = found["attentions"].values()
    lines = [
        "rank: effective rank, exp(entropy of the singular values). 'of N' is the largest possible rank.",
        "entropy: entropy of a row's weights in nats, mean over rows. 'of N' is its value for uniform weights.",
        "relative entropy: a row's entropy divided by its largest possible entropy, mean over rows.",
        "reach: weighted mean distance in tokens between a row and the keys that it reads.",
    ]
    if not all(one["softmax"] for one in listed):
        lines.append("from softmax: total variation distance from the softmax of the same queries and keys, 0 to 1.")
    if any(one["divides"] for one in listed):
        lines.append("least total: the smallest sum that a row's weights are divided by. A row near zero is unstable.")
    return lines


def _table(grid: FigureTable) -> Table:
    table = empty(grid.title, grid.heads, grid.words)
    for row in grid.rows:
        fill(table, row)
    return table


def attentions(found: dict[str, Any]) -> dict[str, FigureTable]:
    """Return one table for each attention, with the statistics of every layer and head."""
    return {name: _attention(name, seen) for name, seen in found["attentions"].items()}


def _attention(name: str, seen: dict[str, Any]) -> FigureTable:
    heads = [f"rank\nof {seen['rank']}", f"entropy\nof {small(seen['entropy'])}", "relative\nentropy", "reach\ntokens"]
    written: list[Callable] = [
        lambda one: small(one["rank"]),
        lambda one: small(one["entropy"]),
        lambda one: percent(one["relative_entropy"]),
        lambda one: small(one["reach"]),
    ]
    if not seen["softmax"]:
        heads, written = [*heads, "from\nsoftmax"], [*written, lambda one: small(one["from_softmax"])]
    if seen["divides"]:
        heads, written = [*heads, "least\ntotal"], [*written, lambda one: small(one["least_total"])]
    statistics = [(n, h, one) for n, layer in enumerate(seen["statistics"], 1) for h, one in enumerate(layer, 1)]
    # Layers of a hybrid have different mechanisms.
    hybrid, kinds = len(set(seen["mechanisms"])) > 1, seen["mechanisms"]
    layer, of_layer = ["mechanism"] * hybrid, [[kind] * hybrid for kind in kinds]
    rows = [[f"{n}", *of_layer[n - 1], f"{h}", *(write(one) for write in written)] for n, h, one in statistics]
    title = f"{name}: {seen['mechanism']}, {len(seen['rows'])} × {len(seen['columns'])}"
    heads, words = ["layer", *layer, "head", *heads], 2 + hybrid
    return FigureTable(title, heads, rows, words, list(_remarks([one for *_, one in statistics])))


def _remarks(statistics: Sequence[dict[str, Any]]) -> Iterable[str]:
    """Yield remarks that the reader needs in order to interpret the statistics of an attention."""
    if any(one["signed"] for one in statistics):
        yield "Some weights are negative. Entropy and reach use their absolute values."
    if most := max(one["empty"] for one in statistics):
        yield f"Up to {most} rows of a map have no weight. The means exclude them."


def training(found: dict[str, Any], most: int | None = None) -> list[FigureTable]:
    """Return the statistics through training, with one column for each checkpoint or for at most `most` of them."""
    rows, notes = found["training"], []
    if most is not None and len(rows) > most:
        places = [round(n * (len(rows) - 1) / (most - 1)) for n in range(most)]
        notes = [f"{most} of {len(rows)} checkpoints are shown; --json and --html contain all of them."]
        rows = [rows[n] for n in places]
    steps = [f"step\n{row['step']:,}" for row in rows]
    kinds = list(found["attentions"])
    layers = [(kind, n) for kind in kinds for n in range(len(found["attentions"][kind]["statistics"]))]
    lines = [["loss", "", *(small(row["loss"]) for row in rows)]]
    # Grouped by statistic, so that the layers can be compared.
    for words, write, pick in STATISTICS:
        block = [
            ["", f"{kind} {n + 1}", *(write(pick(row, kind)[n]) for row in rows)]
            for kind, n in layers
            # Softmax is not compared with itself.
            if words != APART or not found["attentions"][kind]["softmax"]
        ]
        lines += [[words, *line[1:]] if n == 0 else line for n, line in enumerate(block)]
    about = (
        f"Loss, variance of scores and gradient are measured on {found['examples']} validation examples, the other "
        "values on this input. Scores are the inputs of a softmax over the queries and keys, also for other mechanisms."
    )
    parts = found["training"][-1]["parts"]
    flows = [
        [name, small(part["parameters"]), *(small(row["parts"][name]["gradient"]) for row in rows)]
        for name, part in parts.items()
    ]
    return [
        FigureTable("during training, means over heads", ["", "", *steps], lines, 2, [about, *notes]),
        FigureTable("norm of the loss gradient by layer", ["", "norm of\nparameters", *steps], flows, 1, notes),
    ]


def distance(found: dict[str, Any]) -> list[FigureTable]:
    """Return the table of distances from the maps of another run, or an empty list if there is no other run."""
    compared = found["distance"]
    if compared is None:
        return []
    count = max(len(layer) for seen in compared["attentions"].values() for layer in seen["heads"])
    rows = [
        [name, f"{n}", small(mean), *map(small, heads), *[""] * (count - len(heads))]
        for name, seen in compared["attentions"].items()
        for n, (mean, heads) in enumerate(zip(seen["mean"], seen["heads"], strict=True), 1)
    ]
    notes = ["Total variation distance. Heads have no fixed order; the distance of their means does not depend on it."]
    heads = ["", "layer", "mean of\nheads", *(f"head\n{h}" for h in range(1, count + 1))]
    return [FigureTable(f"distance from the maps of {compared['run']}", heads, rows, 2, [*notes, *compared["notes"]])]


def small(value: float | None) -> str:
    """Format a number with three digits, and an undefined one as a dash.

    >>> small(2.3), small(807.8), small(0.000569), small(float("nan")), small(-0.0)
    ('2.30', '808', '5.7e-4', '–', '0.00')
    """
    if value is None or not math.isfinite(value):
        return NONE
    value += 0.0  # removes the sign of a negative zero
    if value == 0 or 1e-3 <= abs(value) < 1e5:
        # Trailing zeros are kept, so that the decimal points align.
        return f"{value:.0f}" if abs(value) >= 99.95 else f"{value:#.3g}"
    digits, _, power = f"{value:.1e}".partition("e")
    return f"{digits}e{int(power)}"


def percent(value: float | None) -> str:
    """Format a fraction as a percentage.

    >>> percent(0.99077), percent(float("nan"))
    ('99%', '–')
    """
    return NONE if value is None or not math.isfinite(value) else f"{round(100 * value) + 0:d}%"


APART = "from softmax"
# The statistics followed through training: name, formatter, and where the value is found in a row.
STATISTICS: list[tuple[str, Callable, Callable]] = [
    ("variance of scores", small, lambda row, kind: row["scores"][kind]),
    ("effective rank", small, lambda row, kind: row["statistics"][kind]["rank"]),
    ("relative entropy", percent, lambda row, kind: row["statistics"][kind]["relative_entropy"]),
    ("reach", small, lambda row, kind: row["statistics"][kind]["reach"]),
    (APART, small, lambda row, kind: row["statistics"][kind]["from_softmax"]),
]
