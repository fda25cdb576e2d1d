"""Dots and intervals on a shared axis, as rows of HTML that are as wide as the page."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from attnlab.console.metric import Metric
from attnlab.lab.reporting.axis import Axis, axis
from attnlab.lab.reporting.markup import Child, Markup, tag
from attnlab.lab.results.estimates import Estimate


@dataclass(frozen=True)
class Mark:
    """An estimate in a row."""

    estimate: Estimate
    """The estimate."""
    order: int
    """The position of its variant in the study, which selects the colour."""
    label: str
    """The name of the variant."""


def strips(metric: Metric, rows: Sequence[tuple[Child, Sequence[Mark]]], seeds: bool) -> Markup:
    """Return a row for each (name, marks) on a shared axis, with the axis below.

    Estimates that are not sound are not drawn.

    Args:
        metric: The metric of all estimates.
        rows: The names with their marks.
        seeds: Whether to draw the values of the seeds too.
    """
    scale = _axis(metric, [mark.estimate for _, marks in rows for mark in marks if mark.estimate.sound], seeds)
    lines = [
        tag("div", tag("span", name, class_="strip-name"), _strip(metric, marks, scale, seeds), class_="strip")
        for name, marks in rows
    ]
    return tag("div", *lines, _scale(metric, scale), class_="strips")


def _axis(metric: Metric, estimates: Sequence[Estimate], seeds: bool) -> Axis:
    ends = [e for estimate in estimates for e in (estimate.mean, *(estimate.shown_interval or ()))]
    ends += [value for estimate in estimates for value in estimate.values] if seeds else []
    return axis([value for value in ends if value is not None], metric)


def _strip(metric: Metric, marks: Sequence[Mark], scale: Axis, seeds: bool) -> Markup:
    grid = [tag("line", x1=scale.at(t), x2=scale.at(t), y1="0", y2="100%", class_="grid") for t in scale.ticks]
    sound = [mark for mark in marks if mark.estimate.sound]
    drawn = [_mark(metric, mark, scale, _height(n, len(sound)), seeds) for n, mark in enumerate(sound)]
    label = "; ".join(f"{mark.label} {_said(metric, mark.estimate)}" for mark in marks)
    return tag("svg", *grid, *drawn, class_="strip-plot", role="img", aria_label=label or "no value")


def _mark(metric: Metric, mark: Mark, scale: Axis, height: float, seeds: bool) -> Markup:
    estimate, y = mark.estimate, f"{100 * height:.0f}%"
    parts = [tag("title", f"{mark.label}: {_said(metric, estimate)}")]
    if estimate.shown_interval is not None:
        low, high = metric.clip(*estimate.shown_interval)
        ends = {"x1": scale.at(low), "x2": scale.at(high)}
        parts.append(tag("line", **ends, y1=y, y2=y, class_="reach"))
    if seeds:
        rings = [value for value in estimate.values if value is not None]
        parts += [tag("circle", cx=scale.at(value), cy=y, r=3.5, class_="ring") for value in rings]
    parts.append(tag("circle", cx=scale.at(estimate.mean or 0.0), cy=y, r=5 if seeds else 4, class_="dot"))
    return tag("g", *parts, class_=f"v{mark.order % 8}")


def _height(n: int, count: int) -> float:
    """Return the vertical position of a mark. Marks of one row are slightly shifted, but remain one row."""
    return 0.5 + 0.5 * (n - (count - 1) / 2) / max(count, 2)


def _said(metric: Metric, estimate: Estimate) -> str:
    return f"{metric.format(estimate.mean)}, {estimate.format_interval(metric)}" if estimate.sound else "failed"


def _scale(metric: Metric, scale: Axis) -> Markup:
    words = [
        tag("text", metric.format_tick(value), x=scale.at(value), y=12, text_anchor=_anchor(scale.at(value)))
        for value in scale.ticks
    ]
    empty = tag("span", class_="strip-name")
    plot = tag("svg", *words, class_="strip-plot scale", aria_hidden="true")
    return tag("div", empty, plot, class_="strip")


def _anchor(place: str) -> str:
    # A centred number at an end would extend beyond the page.
    share = float(place.rstrip("%"))
    return "start" if share < 4 else "end" if share > 96 else "middle"
