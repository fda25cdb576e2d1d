"""Learning curves as pictures: a line for the mean over seeds, and a band for their spread."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from io import StringIO
from typing import Any

import numpy as np

from attnlab.console.metric import Metric
from attnlab.lab.reporting.curves import Curve
from attnlab.lab.reporting.markup import Markup, tag
from attnlab.plotting import canvas, plain


@dataclass(frozen=True)
class Paint:
    """The colours of a figure."""

    ink: str
    """The colour of text."""
    grid: str
    """The colour of lines."""
    variants: tuple[str, ...]
    """The colours of the variants in turn."""


# Placeholder colours. They are replaced by the page's CSS variables in matplotlib's output, to follow light and dark.
_STAND_IN = Paint("#010101", "#010102", tuple(f"#0102{n:02x}" for n in range(8)))
MANY = 8  # with more curves, lines are thinner and bands lighter, because they would hide each other
DASHES: tuple[Any, ...] = ("-", (0, (6, 1.5)), (0, (2, 1.2)), (0, (7, 1.5, 1.5, 1.5)))


def draw(curves: Sequence[Curve], metric: Metric, label: str) -> Markup:
    """Return an SVG of the curves. `label` describes it for screen readers. Its only text is numbers."""
    file = StringIO()
    with plain(ascii(label)):
        figure = canvas(5, 3.1)
        panel(figure.add_subplot(), curves, metric, _STAND_IN)
        figure.savefig(file, format="svg", transparent=True, metadata={"Date": None})
    return _inline(file.getvalue(), label)


def panel(axes: Any, curves: Sequence[Curve], metric: Metric, paint: Paint) -> None:
    """Draw the curves of a metric on matplotlib's axes."""
    for one in curves:
        _draw(axes, one, metric, paint, len(curves) > MANY)
    _dress(axes, curves, metric, paint)


def undressed(axes: Any, paint: Paint, across: str) -> None:
    """Reduce axes to the lines that a reader needs, with a grid across "x" or "y"."""
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.spines["bottom"].set_color(paint.grid)
    axes.tick_params(which="both", colors=paint.ink, length=0, pad=5)
    axes.grid(axis=across, color=paint.grid, linewidth=0.8)
    axes.set_axisbelow(True)


def _draw(axes: Any, one: Curve, metric: Metric, paint: Paint, many: bool) -> None:
    style = {"color": paint.variants[one.order % 8], "linewidth": 1.2 if many else 1.8}
    marker = {"marker": "o", "markersize": 3.5} if len(one.steps) <= 12 else {}
    if one.values.shape[1]:
        dashes = DASHES[(one.order + one.order // 8) % len(DASHES)]
        axes.plot(one.steps, one.values.mean(1), linestyle=dashes, label=one.name, **style, **marker)
    if band := one.band():
        low, high = zip(*(metric.clip(*ends) for ends in zip(*band, strict=True)), strict=True)
        axes.fill_between(one.steps, low, high, color=style["color"], alpha=0.06 if many else 0.18, linewidth=0)
    for steps, values in one.cut:
        axes.plot(steps, values, linestyle=":", color=style["color"], linewidth=1)
        axes.plot(steps[-1:], values[-1:], "x", color=style["color"], markersize=6)


def _dress(axes: Any, curves: Sequence[Curve], metric: Metric, paint: Paint) -> None:
    from matplotlib.ticker import FuncFormatter, MaxNLocator, PercentFormatter

    undressed(axes, paint, "y")
    axes.set_xlabel("step", color=paint.ink)
    axes.set_xlim(0, max(one.steps[-1] for one in curves) * 1.02)
    axes.xaxis.set_major_locator(MaxNLocator(4, integer=True, steps=[1, 2, 2.5, 5, 10]))
    axes.yaxis.set_major_locator(MaxNLocator(5))
    if metric.is_fraction:
        axes.yaxis.set_major_formatter(PercentFormatter(1, decimals=None, symbol=metric.sign))
    elif _decades(curves) > 1.3:
        axes.set_yscale("log")
        # Plain numbers, because powers of ten would be written as mathematics, which the page cannot show.
        axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        axes.yaxis.set_minor_formatter("")


def _decades(curves: Sequence[Curve]) -> float:
    values = np.concatenate([one.values.ravel() for one in curves])
    if values.size == 0 or values.min() <= 0:
        return 0.0
    return float(np.log10(values.max() / values.min()))


def _inline(svg: str, label: str) -> Markup:
    """Return the SVG for embedding: without prologue, metadata, and styles that would affect the rest of the page."""
    body = svg[svg.index("<svg") :]
    body = re.sub(r"<metadata>.*?</metadata>|<style.*?</style>", "", body, flags=re.S)
    body = re.sub(r"<!--.*?-->", "", body, flags=re.S)
    # Ids of groups repeat in every figure and are removed. Ids that are referenced are hashes.
    body = re.sub(r'<g id="[^"]*"', "<g", body)
    body = re.sub(r"font: ([\d.]+)px [^;\"]*", r"font-size: \1px", body)
    # Coordinates are rounded to a hundredth of a point. The numbers along the axes are between tags and unaffected.
    body = re.sub(r"<[^>]*>", lambda found: re.sub(r"(\.\d{2})\d+", r"\1", found[0]), body)
    for stand_in, ours in {_STAND_IN.ink: "ink-2", _STAND_IN.grid: "grid"}.items():
        body = body.replace(stand_in, f"var(--{ours})")
    for n, stand_in in enumerate(_STAND_IN.variants):
        body = body.replace(stand_in, f"var(--v{n})")
    body = re.sub(r"\s*\n\s*", "\n", body)
    viewbox = re.search(r'viewBox="[^"]*"', body)
    inner = body[body.index(">") + 1 :]
    opening = tag("svg", role="img", aria_label=label, class_="curve").removesuffix("></svg>")
    return Markup(f"{opening} {viewbox[0] if viewbox else ''}>{inner.strip()}")
