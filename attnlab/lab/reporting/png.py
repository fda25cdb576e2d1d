"""The figures as PNG for slides and papers. They are written next to the page."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from attnlab.console.metric import Metric
from attnlab.lab.reporting.curve_svg import panel
from attnlab.lab.reporting.curves import Curve
from attnlab.lab.reporting.figure_svg import Paint, style_axes
from attnlab.lab.reporting.style import LIGHT
from attnlab.lab.results.outcome import Outcome, by_metric
from attnlab.plotting import canvas, plain, png

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes

PAINT = Paint(LIGHT["ink"], LIGHT["grid"], tuple(LIGHT[f"v{n}"] for n in range(8)))
LONGEST = 40  # characters of a name
PIXELS = 160  # pixels per inch


def answer(found: Sequence[Outcome]) -> bytes | None:
    """Draw the primary metric of each variant: its seeds, their mean and its interval. None if nothing is sound.

    Variants with the same metric share an axis. The metrics are drawn below each other.
    """
    groups = by_metric(outcome for outcome in found if outcome.primary is not None and outcome.primary.sound)
    if not groups:
        return None
    tall = [1.1 + 0.32 * len(rows) for rows in groups.values()]
    with plain():
        figure = canvas(7, sum(tall))
        below = figure.subplots(len(groups), squeeze=False, height_ratios=tall).flat
        for axes, (metric, rows) in zip(below, groups.items(), strict=True):
            _strips(axes, metric, rows)
        return png(figure, PIXELS)


def learning(panels: Sequence[tuple[Metric, str, Sequence[Curve]]]) -> bytes | None:
    """Draw learning curves (metric, words, curves), two panels in a row, with one legend. None without curves."""
    if not panels:
        return None
    named = {one.order: one for _, _, curves in panels for one in curves}
    with plain():
        lines, rows, columns = -(-len(named) // 4), -(-len(panels) // 2), min(len(panels), 2)
        figure = canvas(5 * columns, 3.4 * rows + 0.22 * lines)
        shown: dict[str, Artist] = {}
        places = list(figure.subplots(rows, columns, squeeze=False).flat)
        for place in places[len(panels) :]:
            place.remove()
        for axes, (metric, words, curves) in zip(places, panels, strict=False):
            panel(axes, curves, metric, PAINT)
            axes.set_title(words, color=PAINT.ink, fontsize=11, loc="left")
            handles, labels = axes.get_legend_handles_labels()
            shown |= dict(zip(labels, handles, strict=True))
        words = list(map(_name, shown))
        figure.legend([*shown.values()], words, loc="outside lower center", ncols=min(4, len(shown)), frameon=False)
        return png(figure, PIXELS)


def _strips(axes: Axes, metric: Metric, rows: Sequence[Outcome]) -> None:
    from matplotlib.ticker import PercentFormatter

    for n, outcome in enumerate(rows):
        _strip(axes, -n, outcome, metric)
    style_axes(axes, PAINT, "x")
    axes.set_yticks([-n for n in range(len(rows))], [_name(outcome.name) for outcome in rows])
    axes.set_ylim(-len(rows) + 0.4, 0.6)
    axes.set_xlabel(f"{metric.title} on the test set", color=PAINT.ink)
    if metric.is_fraction:
        axes.xaxis.set_major_formatter(PercentFormatter(1, decimals=None, symbol=metric.sign))


def _strip(axes: Axes, y: float, outcome: Outcome, metric: Metric) -> None:
    estimate, color = outcome.primary, PAINT.variants[outcome.order % 8]
    if estimate is None or estimate.mean is None:
        return
    if estimate.shown_interval is not None:
        axes.plot(metric.clip(*estimate.shown_interval), [y, y], color=color, linewidth=2.5, alpha=0.5)
    seeds = [value for value in estimate.values if value is not None]
    axes.plot(seeds, [y] * len(seeds), "o", markersize=6, markerfacecolor="none", color=color)
    axes.plot([estimate.mean], [y], "o", markersize=8, color=color)


def _name(name: str) -> str:
    """Shorten a name to one line of characters that can be drawn."""
    shown = "".join(letter if letter.isprintable() else "·" for letter in name)
    return shown if len(shown) <= LONGEST else shown[: LONGEST - 1] + "…"
