"""Scatter plots of a metric over a number: each variant's mean with its interval and its seeds.

Horizontal positions are fractions of the width, so that text keeps its size on narrow and wide screens. Vertical
positions are in pixels. Names are placed for a narrow screen, and have more room on a wide one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from attnlab.console.metric import Metric
from attnlab.lab.reporting.axis import Axis, axis, log_axis
from attnlab.lab.reporting.labels import place, short
from attnlab.lab.reporting.markup import Markup, tag
from attnlab.lab.results.estimates import Estimate

TOP, FOOT = 16.0, 24.0  # pixels above the plot, and below it for the numbers of the horizontal axis
MARGIN = 46.0  # pixels left of the plot, for the numbers of the metric
SIDE = 5.0  # pixels between variants that would overlap


@dataclass(frozen=True)
class Point:
    """An estimate at a position of the horizontal axis."""

    x: float
    """The number on the horizontal axis."""
    estimate: Estimate
    """The estimate of the metric."""
    diverged: int = 0
    """How many seeds diverged and are not in the estimate. It may be all of them."""
    chosen: bool = True
    """Whether it is drawn with the larger dot, for the chosen learning rate."""

    @property
    def failed(self) -> bool:
        """Whether a seed of it has no value to draw."""
        return self.diverged > 0 or not self.estimate.sound


@dataclass(frozen=True)
class Series:
    """The points of a variant."""

    name: str
    """The name of the variant."""
    order: int
    """Its position in the study, which selects the colour."""
    points: tuple[Point, ...]
    """Its points from left to right."""

    @property
    def sound(self) -> list[tuple[Point, float]]:
        """The points that have a mean, with the mean."""
        return [(p, p.estimate.mean) for p in self.points if p.estimate.sound and p.estimate.mean is not None]


@dataclass(frozen=True)
class Frame:
    """The axes of a figure."""

    metric: Metric
    """The metric of the vertical axis."""
    higher: bool
    """Whether higher values are better."""
    across: Axis
    """The horizontal axis, which is logarithmic."""
    down: Axis
    """The vertical axis."""
    width: float
    """The minimum width in pixels."""
    tall: float
    """The height in pixels."""

    def x(self, value: float) -> float:
        """Return the horizontal position of a number as a fraction of the width."""
        left = MARGIN / self.width
        return left + (0.97 - left) * self.across.share(value)

    def y(self, value: float) -> float:
        """Return the vertical position of a value of the metric in pixels."""
        return TOP + self.tall * (1 - self.down.share(value))

    def ticked(self, ticks: Sequence[float]) -> Frame:
        """Return the frame with these ticks on the horizontal axis, from the smallest, except those without room."""
        kept: list[float] = []
        for value in sorted(ticks):
            if not kept or self.width * (self.x(value) - self.x(kept[-1])) > 43:
                kept.append(value)
        return replace(self, across=replace(self.across, ticks=tuple(kept)))


def frame(metric: Metric, higher: bool, series: Sequence[Series], width: float = 330, tall: float = 270) -> Frame:
    """Return axes that contain all of the series."""
    sound = [point.estimate for one in series for point, _ in one.sound]
    ends = [end for e in sound for end in (e.mean, *(e.ends or ()), *e.values) if end is not None]
    heights = metric.clip(min(ends), max(ends)) if ends else ()
    across = log_axis([point.x for one in series for point in one.points], round(width / 66))
    return Frame(metric, higher, across, axis(heights, metric, round(tall / 50) + 1), width, tall)


def scatter(on: Frame, series: Sequence[Series], write: Callable[[float], str], label: str) -> Markup:
    """Return an SVG with the points of all variants, each labelled with its name.

    If seeds diverged or gave no finite value, a cross is drawn at the bad end of the metric.

    Args:
        on: The axes.
        series: The variants.
        write: Formats a number of the horizontal axis.
        label: A description for screen readers.
    """
    offsets = _beside(on, series)
    drawn = [_series(on, one, offset) for one, offset in zip(series, offsets, strict=True)]
    return _svg(on, [*_grid(on, write), *drawn, *_names(on, series, offsets)], label)


def alone(on: Frame, one: Series, others: Sequence[Series], write: Callable[[float], str], label: str) -> Markup:
    """Return the same figure for one variant, with the lines of the other variants in grey."""
    behind = [tag("g", _track(on, other), class_="behind") for other in others if other.order != one.order]
    return _svg(on, [*_grid(on, write), *behind, _series(on, one, 0.0)], label)


def _svg(on: Frame, parts: Sequence[Markup], label: str) -> Markup:
    height = TOP + on.tall + FOOT
    return tag("svg", *parts, height=f"{height:g}", role="img", aria_label=label, class_="scatter")


def _grid(on: Frame, write: Callable[[float], str]) -> list[Markup]:
    rows = [(value, on.y(value)) for value in on.down.ticks]
    drawn = [tag("line", x1="0", x2="100%", y1=f"{y:.1f}", y2=f"{y:.1f}", class_="grid") for _, y in rows]
    drawn += [tag("text", on.metric.format_tick(value), x="0", y=f"{y - 4:.1f}") for value, y in rows]
    foot = TOP + on.tall
    for value in on.across.ticks:
        x = f"{on.x(value):.2%}"
        anchor = "end" if on.x(value) > 0.92 else "middle"
        drawn.append(tag("line", x1=x, x2=x, y1=f"{foot:g}", y2=f"{foot + 5:g}", class_="grid"))
        drawn.append(tag("text", write(value), x=x, y=f"{foot + 18:g}", text_anchor=anchor))
    return drawn


def _beside(on: Frame, series: Sequence[Series]) -> list[float]:
    """Return by how many pixels each variant is shifted, so that variants at the same position do not overlap."""
    places = [[on.width * on.x(point.x) for point in one.points] for one in series]
    offsets = []
    for n, own in enumerate(places):
        near = [m for m, other in enumerate(places) if any(abs(a - b) < SIDE for a in own for b in other)]
        step = min(SIDE, 30.0 / len(near))
        offsets.append(step * (near.index(n) - (len(near) - 1) / 2))
    return offsets


def _series(on: Frame, one: Series, offset: float) -> Markup:
    points = [_point(on, one, point) for point in one.points]
    moved = f"translate({offset:g} 0)" if offset else None
    return tag("g", _track(on, one), *points, transform=moved, class_=f"v{one.order % 8}")


def _track(on: Frame, one: Series) -> list[Markup]:
    """Draw the line from mean to mean."""
    at = [(f"{on.x(point.x):.2%}", f"{on.y(mean):.1f}") for point, mean in one.sound]
    return [tag("line", x1=x1, y1=y1, x2=x2, y2=y2, class_="track") for (x1, y1), (x2, y2) in pairwise(at)]


def _point(on: Frame, one: Series, point: Point) -> Markup:
    """Draw a point with its interval and seeds, relative to its horizontal position."""
    estimate, parts = point.estimate, [tag("title", f"{one.name}: {_said(on.metric, point)}")]
    if estimate.sound and estimate.ends is not None:
        ends = [f"{on.y(end):.1f}" for end in on.metric.clip(*estimate.ends)]
        parts.append(tag("line", x1=0, x2=0, y1=ends[0], y2=ends[1], class_="reach"))
    if estimate.sound and estimate.mean is not None:
        rings = [on.y(value) for value in estimate.values if value is not None]
        parts += [tag("circle", cy=f"{y:.1f}", r=3, class_="ring") for y in rings]
        parts.append(tag("circle", cy=f"{on.y(estimate.mean):.1f}", r=5 if point.chosen else 3, class_="dot"))
    if point.failed:
        y = TOP + on.tall - 4 if on.higher else TOP + 4
        parts.append(tag("path", d=f"M-3.5 {y - 3.5:g}l7 7m0 -7l-7 7", class_="cross"))
    return tag("svg", *parts, x=f"{on.x(point.x):.2%}", overflow="visible")


def _names(on: Frame, series: Sequence[Series], offsets: Sequence[float]) -> list[Markup]:
    """Draw the name of each variant next to its last point, with a line to it if the name had to move."""
    last = [(one, one.sound[-1], offset) for one, offset in zip(series, offsets, strict=True) if one.sound]
    places = [(on.width * on.x(point.x) + offset, on.y(mean)) for _, (point, mean), offset in last]
    words = [short(one.name) for one, _, _ in last]
    reaches = [_reach(on, point.estimate) for _, (point, _), _ in last]
    spots = place(places, reaches, words, on.width, 0.0, TOP + on.tall)
    drawn = []
    for (one, (point, _), offset), (_, y), text, spot in zip(last, places, words, spots, strict=True):
        end = {"x1": 4 * spot.side, "y1": f"{y:.1f}", "x2": 8 * spot.side, "y2": f"{y + spot.shift:.1f}"}
        line = tag("line", **end, class_="leader") if abs(spot.shift) > 7 else None
        anchor = "start" if spot.side > 0 else "end"
        word = tag("text", text, x=9 * spot.side, y=f"{y + spot.shift + 4:.1f}", text_anchor=anchor)
        inner = tag("g", line, word, transform=f"translate({offset:g} 0)")
        drawn.append(tag("svg", inner, x=f"{on.x(point.x):.2%}", overflow="visible", class_=f"label v{one.order % 8}"))
    return drawn


def _reach(on: Frame, estimate: Estimate) -> tuple[float, float]:
    """Return the highest and the lowest pixel that an estimate covers."""
    ends = estimate.mean, *(estimate.ends or ()), *estimate.values
    drawn = [on.y(end) for end in ends if end is not None]
    return min(drawn), max(drawn)


def _said(metric: Metric, point: Point) -> str:
    estimate = point.estimate
    text = f"{metric.format(estimate.mean)}, {estimate.reach(metric)}" if estimate.sound else "no value"
    return text + (f"; {point.diverged} diverged" if point.diverged else "")
