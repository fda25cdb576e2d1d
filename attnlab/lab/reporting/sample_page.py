"""The page of one answer: the input, the answers and the attention maps."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from attnlab.lab.reporting.heatmap import LONGEST, heatmap, ramp, small
from attnlab.lab.reporting.layout import document, scroll, section
from attnlab.lab.reporting.markup import Markup, name, tag
from attnlab.lab.trained.sample import UNFINISHED, scored
from attnlab.storage.json_file import check_target, write_whole


def write(file: str | Path, found: dict[str, Any], text: str, run: str | Path) -> None:
    """Write the page for the result of `attnlab.lab.trained.sample.sample` on `text`.

    Args:
        file: The HTML file to write.
        found: The result.
        text: The input text.
        run: The run folder, whose name is shown.

    Raises:
        FolderError, ValueError: The file cannot be written (see `check_target`).
    """
    file = Path(file)
    check_target("--html", file)
    folder = Path(run).resolve()
    write_whole(file, page(found, text, f"{folder.parent.name}/{folder.name}"))


def page(found: dict[str, Any], text: str, run: str) -> str:
    """Return the page as HTML.

    Args:
        found: The result of `attnlab.lab.trained.sample.sample`.
        text: The input text.
        run: The name of the run.
    """
    header = tag(
        "header",
        tag("p", name(run), " · attnlab", class_="eyebrow"),
        tag("h1", tag("bdi", text), " → ", tag("bdi", found["answer"])),
    )
    return document(f"{text} · {run}", header, _answers(found), _looked(found))


def _answers(found: dict[str, Any]) -> Markup | None:
    """Show all answers, the best first."""
    if not found["answers"]:
        return None
    heads = tag("tr", [tag("th", words, scope="col") for words in ("", "score", "answer")])
    rows = [
        tag(
            "tr",
            tag("th", n, scope="row"),
            tag("td", f"{round(answer.score, 3) + 0.0:.3f}", class_="number"),
            tag("td", tag("bdi", answer.text), "" if answer.finished else " …", class_="text"),
        )
        for n, answer in enumerate(found["answers"], start=1)
    ]
    table = tag("table", tag("thead", heads), tag("tbody", rows), class_="tight answers")
    cut = "" if all(answer.finished for answer in found["answers"]) else f" {UNFINISHED}."
    note = f"Decoder: {_words(found['decoder'])}. Score: {scored(found['decoder'])}.{cut}"
    return section("Answers", scroll(table, "Answers"), tag("p", note, class_="quiet"))


def _words(decoder: object) -> str:
    """Describe a decoder in words: "beam, size 5, penalty 1, best 3"."""
    fields = [f"{field.replace('_', '-')} {value:g}" for field, value in vars(decoder).items() if value is not None]
    return ", ".join([type(decoder).__name__.lower(), *fields])


def _looked(found: dict[str, Any]) -> Markup:
    """Show the maps of the best answer: the last layer large, and every layer and head."""
    if found["layers"] is None:
        note = "There is no map, because this model has no attention from the answer to the input."
        return section("Attention maps", tag("p", note))
    layers, (source, target) = np.asarray(found["layers"], float), (found["source"], found["target"])
    label = "attention of the best answer, last layer, mean over heads"
    longest = max(len(source), len(target))
    cut = f" Only the first {LONGEST} of {longest} positions are drawn." if longest > LONGEST else ""
    note = (
        "A cell is the attention weight of a symbol of the best answer (row) on a symbol of the input (column), both "
        f"in reading order.{cut} The large map is the mean over the heads of the last layer. The maps below show "
        "every layer and head."
    )
    return section(
        "Attention maps",
        tag("p", note, class_="quiet"),
        ramp(),
        tag("figure", scroll(heatmap(layers[-1].mean(0), source, target, label), label), class_="map-figure"),
        [_layer(n, heads) for n, heads in enumerate(layers, start=1)],
    )


def _layer(n: int, heads: np.ndarray) -> Markup:
    """Show the maps `[H T S]` of a layer next to each other, with their mean first."""
    shown = [("mean", heads.mean(0)), *((f"head {h}", weights) for h, weights in enumerate(heads, start=1))]
    figures = [
        tag("figure", tag("figcaption", words), small(weights, f"attention of layer {n}, {words}"))
        for words, weights in shown
    ]
    return tag(
        "div",
        tag("h3", f"Layer {n}"),
        tag("div", figures, class_="heads", style=f"--heads:{min(len(figures), 5)}"),
        class_="map-figure",
    )
