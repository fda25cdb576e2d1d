"""Scatter plots of a metric over a number: each variant's mean with its interval and its seeds.

A figure is drawn for a narrow screen. On a wide one it grows while its text keeps its size, so that names have more
room.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from attnlab.console.metric import Metric
from attnlab.lab.reporting.axis import axis, log_ticks
from attnlab.lab.reporting.figure_svg import BACKGROUND, CURRENT, PAGE, PART, draw, style_axes, svg
from attnlab.lab.reporting.labels import place, short, wide
from attnlab.lab.reporting.markup import Markup, tag
from attnlab.lab.results.estimates import Estimate
from attnlab.plotting import plain

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

FOOT = 24.0  # pixels below the plot, for the numbers of the horizontal axis
SIDE = 5.0  # pixels between variants that would overlap
SIZE = (360.0, 280.0)  # pixels of a figure
PANEL = (165.0, 130.0)  # pixels of one of many panels
MARKERS = {
    "ring": {"marker": "o", "markersize": 6, "markerfacecolor": "none", "markeredgewidth": 1, "alpha": 0.6},
    "dot": {"marker": "o", "markersize": 9, "markeredgecolor": BACKGROUND},
    "small": {"marker": "o", "markersize": 5.5, "markeredgecolor": BACKGROUND},
    "cross": {"marker": "x", "markersize": 7, "markeredgewidth": 1.6},
}

Place = tuple[float, float]  # pixels from the left and from the bottom
Key = tuple[int, int]  # the order of a variant, and the number of its point


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


def scatter(metric: Metric, series: Sequence[Series], write: Callable[[float], str], label: str) -> Markup:
    """Return an SVG with the points of all variants, each labelled with its name where there is room.

    If seeds diverged or gave no finite value, a cross is drawn at the bad end of the metric.

    Args:
        metric: The metric of the vertical axis.
        series: The variants.
        write: Formats a number of the horizontal axis, which is logarithmic.
        label: A description for screen readers.
    """
    with plain(ascii(label)):
        figure, axes = _axes(metric, series, SIZE)
        _write_ticks(axes, log_ticks(*axes.get_xlim(), 5), write)
        offsets = _beside(axes, series)
        rest, points, _ = _draw(figure, axes, series, offsets, metric, [])
        names = _names(axes, series, offsets)
    return svg(SIZE, [rest, *[_group(one, metric, points) for one in series], *names], label, "scatter")


def panels(metric: Metric, series: Sequence[Series], write: Callable[[float], str], label: str) -> list[Markup]:
    """Return an SVG for each variant on shared axes, with the lines of the other variants in grey.

    Args:
        metric, series, write: As for `scatter`. There is a tick at each position that has room.
        label: A description for screen readers, to which the name of the variant is added.
    """
    with plain(ascii(label)):
        figure, axes = _axes(metric, series, PANEL)
        _write_ticks(axes, {point.x for one in series for point in one.points}, write)
        lined = [one for one in series if len(one.sound) > 1]
        lines = [[_pixel(axes, point.x, mean) for point, mean in one.sound] for one in lined]
        rest, points, drawn = _draw(figure, axes, series, [0.0] * len(series), metric, lines)
    tracks = {one.order: track for one, track in zip(lined, drawn, strict=True)}
    # The axes and the grey lines are in the page once.
    shared, figures = f"panel-{series[0].order}", []
    for n, one in enumerate(series):
        behind = tag("use", href=f"#{shared}") if n else tag("g", rest, id=shared, class_="shared")
        content = [behind, _group(one, metric, points, tracks.get(one.order))]
        figures.append(svg(PANEL, content, label + one.name, "scatter"))
    return figures


def _axes(metric: Metric, series: Sequence[Series], size: tuple[float, float]) -> tuple[Figure, Axes]:
    """Return a figure where a point is a pixel, with axes that contain all of the series."""
    from matplotlib.figure import Figure

    (width, height), sound = size, [point.estimate for one in series for point, _ in one.sound]
    ends = [end for e in sound for end in (e.mean, *(e.shown_interval or ()), *e.values) if end is not None]
    down = axis(metric.clip(min(ends), max(ends)) if ends else (), metric, round(height / 50))
    words = [metric.format_tick(value) for value in down.ticks]
    left, bottom = (6 + max(map(wide, words))) / width, FOOT / height
    figure = Figure((width / 72, height / 72), dpi=72)
    axes = figure.add_axes((left, bottom, 1 - left - 8 / width, 1 - bottom - 10 / height), xscale="log")
    style_axes(axes, PAGE, "y")
    axes.minorticks_off()
    numbers = [point.x for one in series for point in one.points]
    room = max((max(numbers) / min(numbers)) ** 0.06, 1.05)
    axes.set_xlim(min(numbers) / room, max(numbers) * room)
    axes.set_ylim(down.low, down.high)
    axes.set_yticks(down.ticks, words)
    return figure, axes


def _write_ticks(axes: Axes, ticks: Iterable[float], write: Callable[[float], str]) -> None:
    """Set the ticks of the horizontal axis, from the smallest, except those whose text has no room."""
    kept: dict[float, Literal["right", "center"]] = {}
    end = 0.0
    for value in sorted(ticks):
        x, width = _x(axes, value), wide(write(value))
        side: Literal["right", "center"] = "right" if x + width / 2 > axes.bbox.x1 + 8 else "center"
        start = x - (width if side == "right" else width / 2)
        if not kept or start > end + 4:
            kept[value], end = side, start + width
    for found, side in zip(axes.set_xticks(list(kept), list(map(write, kept))), kept.values(), strict=True):
        found.label1.set_horizontalalignment(side)


def _pixel(axes: Axes, x: float, y: float) -> Place:
    """Return where a point is drawn. A value beyond an end of the vertical axis is drawn at that end."""
    low, high = axes.get_ylim()
    across, up = axes.transData.transform((x, min(max(y, low), high)))
    return float(across), float(up)


def _x(axes: Axes, value: float) -> float:
    return _pixel(axes, value, axes.get_ylim()[0])[0]


def _beside(axes: Axes, series: Sequence[Series]) -> list[float]:
    """Return by how many pixels each variant is shifted, so that variants at the same position do not overlap."""
    places = [[_x(axes, point.x) for point in one.points] for one in series]
    offsets = []
    for n, own in enumerate(places):
        near = [m for m, other in enumerate(places) if any(abs(a - b) < SIDE for a in own for b in other)]
        step = min(SIDE, 30.0 / len(near))
        offsets.append(step * (near.index(n) - (len(near) - 1) / 2))
    return offsets


def _draw(
    figure: Figure,
    axes: Axes,
    series: Sequence[Series],
    offsets: Sequence[float],
    metric: Metric,
    tracks: Sequence[Sequence[Place]],
) -> tuple[Markup, dict[Key, list[Markup]], list[Markup]]:
    """Draw the points of all variants, and lines from mean to mean.

    An artist for each kind of mark draws many times faster than one for each point.

    Returns:
        The axes with all lines in grey, the elements of each point, and the lines again in the variants' colours.
    """
    from matplotlib.collections import LineCollection
    from matplotlib.lines import Line2D
    from matplotlib.transforms import IdentityTransform

    spans: list[tuple[Key, list[Place]]] = []
    marks: dict[str, list[tuple[Key, Place]]] = {kind: [] for kind in MARKERS}
    bottom, top = axes.bbox.y0 + 4, axes.bbox.y1 - 4
    for one, offset in zip(series, offsets, strict=True):
        for n, point in enumerate(one.points):
            key, estimate, x = (one.order, n), point.estimate, _x(axes, point.x) + offset
            height = lambda value, at=point.x: _pixel(axes, at, value)[1]
            if estimate.sound and estimate.shown_interval is not None:
                spans.append((key, [(x, height(end)) for end in metric.clip(*estimate.shown_interval)]))
            if estimate.sound and estimate.mean is not None:
                marks["ring"] += [(key, (x, height(value))) for value in estimate.values if value is not None]
                marks["dot" if point.chosen else "small"].append((key, (x, height(estimate.mean))))
            if point.failed:
                marks["cross"].append((key, (x, bottom if metric.higher else top)))
    pixels = IdentityTransform()
    lines = [places for _, places in spans]
    for some, color, width, alpha, gid in (
        (tracks, PAGE.grid, 1.2, 1.0, None),
        (tracks, CURRENT, 1.2, 0.6, f"{PART}track"),
        (lines, CURRENT, 2.0, 0.4, f"{PART}span"),
    ):
        style = {"linewidths": width, "alpha": alpha, "capstyle": "round", "transform": pixels, "gid": gid}
        axes.add_collection(LineCollection(some, colors=color, **style))
    for kind, some in marks.items():
        style = {"linestyle": "", "color": CURRENT, "clip_on": False, "transform": pixels, "gid": PART + kind}
        axes.add_artist(Line2D([x for _, (x, _) in some], [y for _, (_, y) in some], **style, **MARKERS[kind]))
    rest, parts = draw(figure)
    points: dict[Key, list[Markup]] = {}
    for kind, some in {"span": spans, **marks}.items():
        for (key, _), element in zip(some, parts.get(PART + kind, []), strict=True):
            points.setdefault(key, []).append(element)
    return rest, points, parts.get(PART + "track", [])


def _names(axes: Axes, series: Sequence[Series], offsets: Sequence[float]) -> list[Markup]:
    """Write the name of each variant next to its last point, with a line to it if the name had to move."""
    last = [(one, *one.sound[-1], offset) for one, offset in zip(series, offsets, strict=True) if one.sound]
    places, reaches = [], []
    for _, point, mean, offset in last:
        ends = mean, *(point.estimate.shown_interval or ()), *point.estimate.values
        x, *heights = _x(axes, point.x), *[SIZE[1] - _pixel(axes, point.x, end)[1] for end in ends if end is not None]
        places.append((x + offset, heights[0]))
        reaches.append((min(heights), max(heights)))
    words = [short(one.name) for one, *_ in last]
    spots = place(places, reaches, words, SIZE[0], 0.0, SIZE[1] - FOOT)
    names = []
    for (one, *_), (x, y), word, spot in zip(last, places, words, spots, strict=True):
        if spot is None:
            continue
        end, shifted = x + 8 * spot.side, y + spot.shift
        far = (
            tag("path", d=f"M{x + 4 * spot.side:.1f} {y:.1f}L{end:.1f} {shifted:.1f}") if abs(spot.shift) > 7 else None
        )
        anchor = None if spot.side > 0 else "end"
        text = tag("text", word, x=f"{end + spot.side:.1f}", y=f"{shifted + 4:.1f}", text_anchor=anchor)
        names.append(tag("g", far, text, class_=f"label v{one.order % 8}"))
    return names


def _group(one: Series, metric: Metric, points: dict[Key, list[Markup]], track: Markup | None = None) -> Markup:
    """Return the elements of a variant. Its points show their numbers on hover."""
    titles = [tag("title", f"{one.name}: {_words(metric, point)}") for point in one.points]
    marks = [tag("g", title, points.get((one.order, n))) for n, title in enumerate(titles)]
    return tag("g", track, marks, class_=f"v{one.order % 8}")


def _words(metric: Metric, point: Point) -> str:
    estimate = point.estimate
    text = f"{metric.format(estimate.mean)}, {estimate.format_interval(metric)}" if estimate.sound else "no value"
    return text + (f"; {point.diverged} diverged" if point.diverged else "")
