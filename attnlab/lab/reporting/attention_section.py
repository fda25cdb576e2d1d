"""The section of the page that shows the attention maps of each variant."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from attnlab.lab.reporting.heatmap import LONGEST, ramp, small
from attnlab.lab.reporting.layout import DETAILED, first_of, section
from attnlab.lab.reporting.map_viewer import map_viewer
from attnlab.lab.reporting.markup import Markup, name, tag
from attnlab.lab.results.outcome import Outcome

HEADS = 16  # with more maps they would be too small to read, so only those of the last layer are shown


def attention_section(found: Sequence[Outcome]) -> Markup | None:
    """Show the attention maps of each variant with symbols along the axes, and with sliders if scripts run."""
    mapped = [outcome for outcome in found if outcome.maps]
    if not mapped:
        return None
    drawn = mapped[:DETAILED]
    rest = first_of(len(drawn), len(mapped), "attnlab inspect RUN shows the maps of any run")
    longest = max(max(one.layers.shape[2:]) for outcome in drawn for one in outcome.maps)
    # The stored part of a longer example does not record the full length, so the note gives no total.
    cut = f" Only the first {LONGEST} positions are drawn." if longest > LONGEST else ""
    note = (
        "A cell is the attention weight of a symbol (row) on another (column), both in reading order. The output is "
        f"the model's own answer.{cut} The large map is the mean over the heads of the last layer until the sliders "
        "are moved. The small maps are the heads, on the first example."
    )
    return section("Attention maps", tag("p", note, class_="quiet"), rest, ramp(), [_map(outcome) for outcome in drawn])


def _map(outcome: Outcome) -> Markup:
    layers = outcome.maps[0].layers
    each = _heads(layers, outcome.name) if layers.shape[0] * layers.shape[1] > 1 else []
    heads = tag("div", each, class_="heads", style=f"--heads:{min(layers.shape[1], 4)}") if each else None
    return tag(
        "figure",
        tag("figcaption", name(outcome.name)),
        tag("div", map_viewer(outcome.maps, f"attention of {outcome.name}"), heads, class_="map-row"),
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
