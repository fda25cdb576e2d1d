"""The page of an inspection: every map with its statistics, and the statistics through training."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from attnlab.lab.reporting import heatmap
from attnlab.lab.reporting.layout import document, scroll, section
from attnlab.lab.reporting.markup import Markup, name, tag
from attnlab.lab.trained.inspect import named
from attnlab.lab.trained.inspect_tables import FigureTable, attentions, distance, percent, small, training
from attnlab.storage.json_file import check_target, write_whole

KNOWN = (
    "A cell of a map is the attention weight of a symbol (row) on another (column). Effective rank is the exponential "
    "of the entropy of the singular values; next to it is the largest possible rank. Entropy is the entropy of a row's "
    "weights in nats, averaged over rows; next to it is its value for uniform weights on all visible keys. Share is a "
    "row's entropy divided by its largest possible entropy, averaged over rows. Reach is the weighted mean distance in "
    "tokens between a row and the keys that it reads, where both sides are counted from their first token."
)
APART = " From softmax is the total variation distance of the rows from the softmax of the same queries and keys."
TOTAL = " Least total is the smallest sum that a row's weights are divided by. A row with a sum near zero is unstable."
LEFT = "text-align:left"


def write(file: str | Path, found: dict[str, Any], text: str, run: str | Path) -> None:
    """Write the page for the result of `attnlab.lab.trained.inspect.inspect` on `text`.

    Args:
        file: The HTML file to write.
        found: The result.
        text: The input text.
        run: The run folder, whose name is shown.

    Raises:
        FolderError, ValueError: The file cannot be written (see `check_target`).
    """
    check_target("--html", Path(file))
    write_whole(Path(file), page(found, text, named(run)))


def page(found: dict[str, Any], text: str, run: str) -> str:
    """Return the page as HTML.

    Args:
        found: The result of `attnlab.lab.trained.inspect.inspect`.
        text: The input text.
        run: The name of the run.
    """
    header = tag(
        "header",
        tag("p", name(run), f" · step {found['step']:,} · attnlab", class_="eyebrow"),
        tag("h1", tag("bdi", text), " → ", tag("bdi", found["answer"])),
        [tag("p", note, class_="banner") for note in found["notes"]],
        tag("p", KNOWN, *_explained(found["attentions"].values()), class_="quiet"),
    )
    grids = attentions(found)
    maps = [_attention(kind, each, grids[kind]) for kind, each in found["attentions"].items()]
    statistics = [section(_sentence(grid.title), *_table(grid)) for grid in [*training(found), *distance(found)]]
    return document(f"inspect {run} · {text}", header, *maps, *statistics)


def _explained(attentions: Iterable[dict[str, Any]]) -> Iterator[str]:
    """Explain the statistics that not every attention has."""
    listed = list(attentions)
    if not all(one["softmax"] for one in listed):
        yield APART
    if any(one["divides"] for one in listed):
        yield TOTAL


def _attention(kind: str, seen: dict[str, Any], grid: FigureTable) -> Markup:
    """Show all maps of one attention: the last layer large, every head with its statistics, and their table."""
    layers, label = np.asarray(seen["layers"], float), f"{kind} attention, last layer, mean over heads"
    longest = max(layers.shape[-2:])
    cut = f" Only the first {heatmap.LONGEST} of {longest} positions are drawn." if longest > heatmap.LONGEST else ""
    note = f"The large map is the mean over the heads of the last layer. The maps below show every layer and head.{cut}"
    large = heatmap.heatmap(layers[-1].mean(0), seen["columns"], seen["rows"], label)
    return section(
        f"{_sentence(kind)}: {seen['mechanism']}",
        tag("p", note, class_="quiet"),
        heatmap.ramp(),
        tag("figure", scroll(large, label), class_="map-figure"),
        [_layer(kind, n, heads, seen["statistics"][n - 1]) for n, heads in enumerate(layers, start=1)],
        tag("div", *_table(grid), class_="map-figure"),
    )


def _layer(kind: str, n: int, heads: np.ndarray, statistics: list[dict[str, Any]]) -> Markup:
    """Show the maps `[H T S]` of a layer next to each other."""
    drawn = [
        tag(
            "figure",
            tag(
                "figcaption",
                f"head {h} · rank {small(one['rank'])}, relative entropy {percent(one['relative_entropy'])}",
            ),
            heatmap.small(weights, f"{kind} attention of layer {n}, head {h}"),
        )
        for h, (weights, one) in enumerate(zip(heads, statistics, strict=True), start=1)
    ]
    maps = tag("div", drawn, class_="heads", style=f"--heads:{min(len(drawn), 5)}")
    return tag("div", tag("h3", f"Layer {n}"), maps, class_="map-figure")


def _table(grid: FigureTable) -> list[Markup]:
    """Return a table with its notes below."""
    sides = [LEFT if n < grid.words else None for n in range(len(grid.heads))]
    columns = list(zip(grid.heads, sides, strict=True))
    heads = tag("tr", [tag("th", head.replace("\n", " "), scope="col", style=side) for head, side in columns])
    rows = [
        tag("tr", [tag("td", cell, style=side) for cell, side in zip(row, sides, strict=True)]) for row in grid.rows
    ]
    table = tag("table", tag("thead", heads), tag("tbody", rows), class_="tight", style="width:auto")
    return [scroll(table, _sentence(grid.title)), *[tag("p", note, class_="quiet") for note in grid.notes]]


def _sentence(words: str) -> str:
    return words[:1].upper() + words[1:]
