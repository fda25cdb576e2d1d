"""Dots and intervals on a common axis, as rows of HTML: wide as the page, names in its own letters."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from attnlab.lab.outcome import Estimate
from attnlab.lab.quantity import is_rate, measure
from attnlab.lab.report.markup import Markup, tag


@dataclass(frozen=True)
class Mark:
    """One estimate in a row, drawn in the colour of its variant (`order`) and named by `label`."""

    estimate: Estimate
    order: int
    label: str


def strips(metric: str, rows: Sequence[tuple[object, Sequence[Mark]]], seeds: bool) -> Markup:
    """A row for each (name, marks), all on one axis, with the axis below.

    A mark is a dot at its mean with a line for its interval; `seeds` adds a small ring for each seed.
    Estimates that are not sound are left out.
    """
    axis = _axis(metric, [mark.estimate for _, marks in rows for mark in marks if mark.estimate.sound], seeds)
    lines = [
        tag("div", tag("span", name, class_="strip-name"), _strip(metric, marks, axis, seeds), class_="strip")
        for name, marks in rows
    ]
    return tag("div", *lines, _scale(metric, axis), class_="strips")


@dataclass(frozen=True)
class _Axis:
    low: float
    high: float
    ticks: tuple[float, ...]

    def at(self, value: float) -> str:
        """Where a value stands, in per cent of the width; past an end, at the end."""
        share = (value - self.low) / (self.high - self.low)
        return f"{100 * min(max(share, 0), 1):.2f}%"


def _axis(metric: str, estimates: Sequence[Estimate], seeds: bool) -> _Axis:
    ends = [e for estimate in estimates for e in (estimate.mean, estimate.low, estimate.high)]
    ends += [value for estimate in estimates for value in estimate.values] if seeds else []
    numbers = [value for value in ends if value is not None] or [0.0, 1.0]
    low, high = min(numbers), max(numbers)
    low, high = _within(metric, low, high)
    room = 0.04 * (high - low) or 0.01 * (abs(high) or 1)
    step = _step((high - low + 2 * room) / 4)
    ticks = [n * step for n in range(math.ceil((low - room) / step), math.floor((high + room) / step) + 1)]
    if is_rate(metric):
        ticks = [tick for tick in ticks if -1e-9 <= tick <= 1 + 1e-9]
    return _Axis(low - room, high + room, tuple(ticks))


def _within(metric: str, low: float, high: float) -> tuple[float, float]:
    """The part of an interval where the truth can be."""
    return (max(low, 0.0), min(high, 1.0)) if is_rate(metric) else (low, high)


def _step(rough: float) -> float:
    """The smallest of 1, 2, 5 times a power of ten that is no less."""
    power = 10.0 ** math.floor(math.log10(rough))
    return next(power * n for n in (1, 2, 5, 10) if power * n >= rough * 0.999)


def _strip(metric: str, marks: Sequence[Mark], axis: _Axis, seeds: bool) -> Markup:
    grid = [tag("line", x1=axis.at(t), x2=axis.at(t), y1="0", y2="100%", class_="grid") for t in axis.ticks]
    sound = [mark for mark in marks if mark.estimate.sound]
    drawn = [_mark(metric, mark, axis, _height(n, len(sound)), seeds) for n, mark in enumerate(sound)]
    said = "; ".join(f"{mark.label} {_said(metric, mark.estimate)}" for mark in marks)
    return tag("svg", *grid, *drawn, class_="strip-plot", role="img", aria_label=said or "no value")


def _mark(metric: str, mark: Mark, axis: _Axis, height: float, seeds: bool) -> Markup:
    estimate, y = mark.estimate, f"{100 * height:.0f}%"
    parts = [tag("title", f"{mark.label}: {_said(metric, estimate)}")]
    if estimate.low is not None and estimate.high is not None:
        low, high = _within(metric, estimate.low, estimate.high)
        ends = {"x1": axis.at(low), "x2": axis.at(high)}
        parts.append(tag("line", **ends, y1=y, y2=y, class_="reach"))
    if seeds:
        rings = [value for value in estimate.values if value is not None]
        parts += [tag("circle", cx=axis.at(value), cy=y, r=3.5, class_="ring") for value in rings]
    parts.append(tag("circle", cx=axis.at(estimate.mean or 0.0), cy=y, r=5 if seeds else 4, class_="dot"))
    return tag("g", *parts, class_=f"v{mark.order % 8}")


def _height(n: int, count: int) -> float:
    """Marks of one row a little below each other, near enough to be seen as one row."""
    return 0.5 + 0.5 * (n - (count - 1) / 2) / max(count, 2)


def _said(metric: str, estimate: Estimate) -> str:
    if not estimate.sound:
        return "failed"
    text = measure(metric, estimate.mean)
    if estimate.low is None or estimate.high is None:
        return text
    return f"{text}, {measure(metric, estimate.low)} to {measure(metric, estimate.high)}"


def _scale(metric: str, axis: _Axis) -> Markup:
    words = [
        tag("text", _tick(metric, tick), x=axis.at(tick), y=12, text_anchor=_anchor(axis.at(tick)))
        for tick in axis.ticks
    ]
    empty = tag("span", class_="strip-name")
    plot = tag("svg", *words, class_="strip-plot scale", aria_hidden="true")
    return tag("div", empty, plot, class_="strip")


def _tick(metric: str, value: float) -> str:
    return f"{100 * value:.4g}%" if is_rate(metric) else f"{value:.4g}"


def _anchor(place: str) -> str:
    # A number at an end would stick out of the page.
    share = float(place.rstrip("%"))
    return "start" if share < 4 else "end" if share > 96 else "middle"
