"""The section of the page that plots the primary metric over costs: learning rate, state, time and FLOPs."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from attnlab.console.format import large, number
from attnlab.console.metric import Metric
from attnlab.lab.reporting.layout import section
from attnlab.lab.reporting.markup import Markup, join, name, tag
from attnlab.lab.reporting.scatter import Point, Series, panels, scatter
from attnlab.lab.reporting.verdict_text import listed
from attnlab.lab.results.estimates import Rate, is_rate
from attnlab.lab.results.outcome import Outcome, by_metric

NOTE = (
    "Rings are seeds, dots are their means, and lines are 95% intervals. The horizontal axes are logarithmic. Variants "
    "at the same position are drawn side by side. Where there is no room for a name, it is shown on hover."
)
_TIMES = ((3600, "h"), (60, "min"), (1, "s"))


def tradeoffs(found: Sequence[Outcome]) -> Markup | None:
    """Plot the metric over each cost of several variants, and over the learning rates if several were trained.

    Each primary metric has its own figures.
    """
    groups = by_metric(outcome for outcome in found if outcome.result is not None)
    figures = join(*(_of(finished) for finished in groups.values()))
    return section("Metric against cost", figures, tag("p", NOTE, class_="quiet")) if figures else None


def _of(finished: Sequence[Outcome]) -> Markup:
    """Return the figures of the variants that share a primary metric."""
    unit, seconds = _time(finished)
    figures = [
        _cost(finished, "decoding state", _state, lambda x: large(x, "B")),
        _cost(finished, "training time, all lanes", lambda o: _over(o, seconds), lambda x: f"{x:g} {unit}"),
        _cost(finished, "training FLOPs, one lane", Outcome.training_flops, lambda x: large(x, "FLOP")),
    ]
    costs = join(*figures)
    return join(tag("div", costs, class_="pair costs") if costs else None, _rates(finished))


def _cost(
    finished: Sequence[Outcome], words: str, of: Callable[[Outcome], float | None], write: Callable[[float], str]
) -> Markup | None:
    """Plot the test metric over a cost. Finished variants without the metric or the cost are listed below."""
    sound = [outcome for outcome in finished if outcome.primary is not None and outcome.primary.sound]
    costs = {outcome.name: of(outcome) or 0.0 for outcome in sound}
    shown = [outcome for outcome in sound if costs[outcome.name] > 0]
    if len(shown) < 2:
        return None
    metric = shown[0].primary_metric
    points = {o.name: Point(costs[o.name], o.primary, len(o.lost_lanes())) for o in shown if o.primary}
    series = [Series(o.name, o.order, (points[o.name],)) for o in shown]
    absent = [outcome.name for outcome in finished if outcome not in shown]
    crosses = (
        tag("span", "; × marks seeds that diverged", class_="quiet") if any(p.failed for p in points.values()) else None
    )
    return tag(
        "figure",
        tag("figcaption", tag("b", metric.title, " against ", words), crosses),
        scatter(metric, series, write, _label(metric, words, series)),
        tag("p", "Not drawn, because a number is missing: ", listed(absent), class_="quiet") if absent else None,
    )


def _rates(finished: Sequence[Outcome]) -> Markup | None:
    """Plot the validation metric over the learning rate, with one panel for each variant and shared axes."""
    several = [outcome for outcome in finished if len(outcome.rates) > 1]
    series = [Series(o.name, o.order, tuple(_rate(o, rate) for rate in o.rates)) for o in several]
    if not any(one.sound for one in series):
        return None
    metric = several[0].primary_metric
    label = f"{metric.title} against learning rate for "
    drawn = panels(metric, series, lambda x: f"{x:g}", label)
    figures = [
        tag("figure", tag("figcaption", name(one.name), class_=f"v{one.order % 8}"), panel)
        for one, panel in zip(series, drawn, strict=True)
    ]
    lost = any(point.failed for one in series for point in one.points)
    crosses = "; × marks seeds that diverged or have no finite value" if lost else ""
    more = f" on validation; the larger dot is the chosen rate{crosses}"
    caption = tag("b", metric.title, " against learning rate"), tag("span", more, class_="quiet")
    return tag("figure", tag("figcaption", *caption), tag("div", figures, class_="panels"))


def _rate(outcome: Outcome, rate: Rate) -> Point:
    taken = number((outcome.result or {}).get("learning_rate"))
    chosen = taken is not None and is_rate(taken, rate.learning_rate)
    return Point(rate.learning_rate, rate.estimate, rate.diverged, chosen)


def _label(metric: Metric, words: str, series: Sequence[Series]) -> str:
    return f"{metric.title} against {words} for " + ", ".join(one.name for one in series)


def _state(outcome: Outcome) -> float | None:
    return number((outcome.result or {}).get("state_bytes"))


def _time(finished: Sequence[Outcome]) -> tuple[str, int]:
    """Return the unit that suits the shortest training time, and its length in seconds."""
    least = min((_over(outcome, 1) or 0.0 for outcome in finished), default=0.0)
    return next(((unit, size) for size, unit in _TIMES if least >= size), ("s", 1))


def _over(outcome: Outcome, seconds: int) -> float | None:
    found = number((outcome.result or {}).get("seconds"))
    return None if found is None else found / seconds
