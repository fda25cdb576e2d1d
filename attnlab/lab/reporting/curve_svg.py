"""Learning curves as pictures: a line for the mean over seeds, and a band for their spread."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from attnlab.console.metric import Metric
from attnlab.lab.reporting.curves import Curve
from attnlab.lab.reporting.figure_svg import PAGE, Paint, draw, style_axes, svg
from attnlab.lab.reporting.markup import Markup
from attnlab.plotting import canvas, plain

if TYPE_CHECKING:
    from matplotlib.axes import Axes


SIZE = (360.0, 223.0)  # points
MANY = 8  # with more curves, lines are thinner and bands lighter, because they would hide each other
DASHES: tuple[str | tuple[float, tuple[float, ...]], ...] = ("-", (0, (6, 1.5)), (0, (2, 1.2)), (0, (7, 1.5, 1.5, 1.5)))


def learning_curves(curves: Sequence[Curve], metric: Metric, label: str) -> Markup:
    """Return an SVG of the curves. Its only text is numbers.

    Args:
        curves: The curves, at least one.
        metric: The metric of the vertical axis.
        label: The description for screen readers.
    """
    with plain(ascii(label)):
        figure = canvas(SIZE[0] / 72, SIZE[1] / 72)
        panel(figure.add_subplot(), curves, metric, PAGE)
        return svg(SIZE, [draw(figure)[0]], label, "curve")


def panel(axes: Axes, curves: Sequence[Curve], metric: Metric, paint: Paint) -> None:
    """Draw the curves recorded under `metric` on matplotlib's axes.

    Args:
        axes: The axes to draw on.
        curves: The curves, at least one.
        metric: The metric of the vertical axis.
        paint: The colours.
    """
    for one in curves:
        _plot(axes, one, paint, len(curves) > MANY)
    _plot_bands(axes, curves, metric, paint)
    _format_axes(axes, curves, metric, paint)


def _plot(axes: Axes, one: Curve, paint: Paint, many: bool) -> None:
    style = {"color": _color(one, paint), "linewidth": 1.2 if many else 1.8}
    marker = {"marker": "o", "markersize": 3.5} if len(one.steps) <= 12 else {}
    if one.values.shape[1]:
        dashes = DASHES[(one.order + one.order // 8) % len(DASHES)]
        axes.plot(one.steps, one.values.mean(1), linestyle=dashes, label=one.name, **style, **marker)
    for steps, values in one.cut:
        axes.plot(steps, values, linestyle=":", color=style["color"], linewidth=1)
        axes.plot(steps[-1:], values[-1:], "x", color=style["color"], markersize=6)


def _plot_bands(axes: Axes, curves: Sequence[Curve], metric: Metric, paint: Paint) -> None:
    """Draw the spread of every curve that has one."""
    from matplotlib.collections import PolyCollection

    outlines, colors = [], []
    for one in curves:
        if band := one.band():
            low, high = zip(*(metric.clip(*ends) for ends in zip(*band, strict=True)), strict=True)
            outlines.append([*zip(one.steps, low, strict=True), *zip(one.steps[::-1], high[::-1], strict=True)])
            colors.append(_color(one, paint))
    alpha = 0.06 if len(curves) > MANY else 0.18
    # One collection: with hundreds of curves, a call of `fill_between` for each takes seconds.
    if outlines:
        axes.add_collection(PolyCollection(outlines, facecolors=colors, alpha=alpha, linewidths=0))
        axes.autoscale_view()


def _color(one: Curve, paint: Paint) -> str:
    """Return the colour of a curve."""
    return paint.variants[one.order % 8]


def _format_axes(axes: Axes, curves: Sequence[Curve], metric: Metric, paint: Paint) -> None:
    from matplotlib.ticker import FuncFormatter, MaxNLocator, PercentFormatter

    style_axes(axes, paint, "y")
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
