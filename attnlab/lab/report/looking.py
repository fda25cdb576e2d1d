"""The section of the page that shows where each variant looks."""

from __future__ import annotations

import numpy as np

from attnlab.lab.outcome import Outcome
from attnlab.lab.report.heatmap import heatmap, ramp, small
from attnlab.lab.report.layout import scroll, section
from attnlab.lab.report.markup import Markup, name, tag

HEADS = 16  # more maps than these are too small to read; then only the last layer's are shown


def maps(found: list[Outcome]) -> Markup | None:
    """One attention map for each variant, its characters along the axes."""
    shown = [_map(outcome) for outcome in found if outcome.maps is not None]
    if not shown:
        return None
    note = (
        "How much each output character (a row) drew from each input character (a column), both in the order "
        "in which they are read; the output is the model's own. Large: the last layer, mean of its heads."
    )
    return section("What it looks at", tag("p", note, class_="quiet"), ramp(), shown)


def _map(outcome: Outcome) -> Markup:
    found = outcome.maps or {}
    source, target, layers = found["source"], found["target"], found["layers"]
    label = f"attention of {outcome.name}, last layer, mean over heads"
    whole = heatmap(layers[-1].mean(0), source, target, label)
    reads = [tag("bdi", "".join(map(str, source))), " → ", tag("bdi", "".join(map(str, target)))]
    heads = tag("div", _heads(layers, outcome.name), class_="heads", style=f"--heads:{min(layers.shape[1], 4)}")
    return tag(
        "figure",
        tag("figcaption", name(outcome.name), ": ", reads, class_="reads"),
        tag("div", scroll(whole, label), heads, class_="map-row"),
        class_="map-figure",
    )


def _heads(layers: np.ndarray, variant: str) -> list[Markup]:
    count, heads = layers.shape[:2]
    first = 0 if count * heads <= HEADS else count - 1
    return [
        tag(
            "figure",
            tag("figcaption", f"layer {layer + 1}, head {head + 1}"),
            small(layers[layer, head], f"attention of {variant}, layer {layer + 1}, head {head + 1}"),
        )
        for layer in range(first, count)
        for head in range(min(heads, HEADS))
    ]
