"""The sections of a study's page that hold its numbers; each answers None where it has nothing to show."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from attnlab.lab.outcome import Estimate, Outcome
from attnlab.lab.quantity import NONE, measure, title
from attnlab.lab.report.answer import reading, verdicts
from attnlab.lab.report.figures import Curve, curve, draw
from attnlab.lab.report.layout import details, scroll, section
from attnlab.lab.report.markup import Markup, name, tag
from attnlab.lab.report.strips import Mark, strips
from attnlab.lab.table import Cell, state, table_of

DASHES = ("none", "6 2", "2 2", "7 2 2 2")


def opening(found: list[Outcome], study: str) -> Markup:
    """The question, and what a reader must know before any number."""
    asked = next((o.experiment["question"] for o in found if o.experiment.get("question")), "")
    finished = sum(outcome.result is not None for outcome in found)
    counted = f"{finished} of {len(found)} variants finished" if finished < len(found) else ""
    eyebrow = [name(study), " · attnlab", f" · {counted}" if counted else ""]
    quick = any(outcome.experiment.get("quick") for outcome in found)
    warning = "A glimpse (--quick): trained for too short a time to conclude anything from."
    return tag(
        "header",
        tag("p", eyebrow, class_="eyebrow"),
        tag("h1", asked or study, dir="auto"),
        tag("p", tag("b", "Quick run. "), warning, class_="banner") if quick else None,
        _troubles(found),
    )


def findings(found: list[Outcome]) -> Markup:
    """The answer in words, over a drawing of the headline metric."""
    rows = [
        (name(o.name), [Mark(o.headline, o.order, o.name)])
        for o in found
        if o.headline is not None and o.headline.sound
    ]
    plot = None
    if rows:
        metric = next(o.result["metric"] for o in found if o.result)
        plot = tag(
            "figure",
            _caption(metric, [mark.estimate for _, marks in rows for mark in marks]),
            strips(metric, rows, seeds=True),
        )
    said = [tag("p", sentence) for sentence in verdicts(found)]
    readings = [tag("p", reading(outcome)) for outcome in found if outcome.result is not None]
    unfinished = [
        tag("p", name(o.name), f": {state(o)}; not part of any number here.", class_="quiet")
        for o in found
        if o.result is None
    ]
    quick = any(outcome.experiment.get("quick") for outcome in found)
    heading = "The answer of a quick run" if quick else "The answer"
    return section(heading, tag("div", said, class_="said"), plot, readings, unfinished, class_="answer")


def numbers(found: list[Outcome]) -> Markup:
    """The table: what came out, and what it cost."""
    heads, rows = table_of(found)
    head = tag("tr", tag("th", "variant", scope="col"), [tag("th", text, scope="col") for text in heads])
    body = [_row(outcome, heads, cells) for outcome, cells in zip(found, rows, strict=True)]
    table = tag("table", tag("thead", head), tag("tbody", body), class_="results")
    return section("The numbers", scroll(table, "Results"), tag("p", NOTES, class_="quiet"))


NOTES = (
    "Metrics are of the test set, with 95% intervals (Student's t over seeds; rates' are cut at 0 and 100%). "
    "All lanes (seeds times learning rates) train together: time and memory are of all of them, FLOPs of "
    "one. The decoding state is what one example takes. Point at a number for all its digits."
)


def learning(found: list[Outcome]) -> Markup | None:
    """Loss and the headline metric on validation, step by step."""
    finished = [outcome for outcome in found if outcome.result is not None]
    metrics = dict.fromkeys(f"valid.{o.result['metric']}" for o in finished if o.result)
    drawn = [(key, _curves(finished, key)) for key in ("loss", *metrics)]
    figures = [_figure(key, curves) for key, curves in drawn if curves]
    if not figures:
        return None
    shown = {one.order: one for _, curves in drawn for one in curves}
    legend = tag("ul", [_key(one) for one in shown.values()], class_="legend")
    note = _band_note([one for _, curves in drawn for one in curves])
    return section("Learning", legend, tag("div", figures, class_="pair"), tag("p", note, class_="quiet"))


def groups(found: list[Outcome]) -> Markup | None:
    """Each metric by group (by language, say), the hardest group first."""
    finished = [outcome for outcome in found if outcome.result is not None]
    wholes = dict.fromkeys(m.split(".")[0] for o in finished for m in o.metrics if "." in m)
    if not wholes:
        return None
    headline = next(o.result["metric"] for o in finished if o.result)
    order = sorted(wholes, key=lambda metric: metric != headline)
    blocks = [_groups(finished, metric, first=n == 0) for n, metric in enumerate(order)]
    return section("By group", tag("ul", [_dot(o) for o in finished], class_="legend"), blocks)


def _caption(metric: str, estimates: Sequence[Estimate]) -> Markup:
    words = "each ring a seed, the dot their mean, the line its 95% interval"
    if all(estimate.low is None for estimate in estimates):
        words = "one seed, which has no interval"
    return tag("figcaption", tag("b", title(metric)), tag("span", f" on the test set: {words}", class_="quiet"))


def _troubles(found: list[Outcome]) -> Markup | None:
    lines = [tag("li", line) for outcome in found for line in outcome.troubles]
    if not lines:
        return None
    return tag("div", tag("b", "Could not be read:"), tag("ul", lines, class_="plain"), class_="banner")


def _row(outcome: Outcome, heads: list[str], cells: list[Cell]) -> Markup:
    first = tag("th", name(outcome.name), scope="row")
    if outcome.result is None:
        return tag("tr", first, tag("td", cells[0].text, colspan=len(heads), class_="state"))
    return tag("tr", first, [_cell(head, cell) for head, cell in zip(heads, cells, strict=True)])


def _cell(head: str, cell: Cell) -> Markup:
    note = tag("span", cell.note, class_="quiet") if cell.note else None
    value = tag("span", cell.text, title=cell.exact or None)
    return tag("td", tag("span", head, class_="head", aria_hidden="true"), value, note)


def _curves(finished: list[Outcome], key: str) -> list[Curve]:
    return [one for one in (curve(outcome, key) for outcome in finished) if one is not None]


def _figure(key: str, curves: list[Curve]) -> Markup:
    part = " on validation" if key.startswith("valid.") else " in training"
    words = title(key.removeprefix("valid.")) + part
    label = f"{words}, by step, of " + ", ".join(one.name for one in curves)
    return tag("figure", tag("figcaption", tag("b", words)), draw(curves, key, label))


def _key(one: Curve) -> Markup:
    dash = DASHES[(one.order + one.order // 8) % len(DASHES)]
    line = tag("line", x1=0, x2=30, y1=5, y2=5, stroke_width=2.5, stroke_dasharray=dash)
    return tag("li", tag("svg", line, aria_hidden="true"), name(one.name), class_=f"v{one.order % 8}")


def _band_note(curves: list[Curve]) -> str:
    seeds = {one.values.shape[1] for one in curves}
    said = ["Lines are means over seeds"]
    if any(2 <= count < 5 for count in seeds):
        said.append("bands reach from the lowest seed to the highest (too few for an interval at each step)")
    if any(count >= 5 for count in seeds):
        said.append("bands are 95% intervals of the mean")
    if 1 in seeds:
        said.append("one seed has no band")
    if any(one.cut for one in curves):
        said.append("a dotted line that ends in a cross is a seed that diverged, kept out of the mean")
    return "; ".join(said) + ". Where several learning rates were trained, the chosen one is shown."


def _dot(outcome: Outcome) -> Markup:
    dot = tag("circle", cx=15, cy=5, r=4, class_="dot")
    return tag("li", tag("svg", dot, aria_hidden="true"), name(outcome.name), class_=f"v{outcome.order % 8}")


def _groups(finished: list[Outcome], metric: str, first: bool) -> Markup | None:
    prefix = f"{metric}."
    named = dict.fromkeys(m.removeprefix(prefix) for o in finished for m in o.metrics if m.startswith(prefix))
    higher = _higher(finished, metric)

    def ease(group: str) -> tuple[float, str]:
        means = [o.metrics[prefix + group].mean for o in finished if prefix + group in o.metrics]
        mean = float(np.mean([m for m in means if m is not None] or [0.0]))
        return mean if higher else -mean, group

    rows = [(name(group), _marks(finished, prefix + group)) for group in sorted(named, key=ease)]
    plot = tag("div", strips(metric, rows, seeds=False), class_="groups")
    cells = scroll(_group_table(finished, prefix, sorted(named)), title(metric))
    table = details("The same as a table", cells)
    heading = f"{title(metric)} by group, hardest first"
    return tag("div", tag("h3", heading), plot, table) if first else details(heading, plot, table)


def _higher(finished: list[Outcome], metric: str) -> bool:
    """Whether more of a metric is better: of the headline one it is said, others are told by name."""
    for outcome in finished:
        if outcome.result and outcome.result["metric"] == metric:
            return outcome.result["higher"]
    return not metric.endswith(("error_rate", "loss", "perplexity"))


def _marks(finished: list[Outcome], metric: str) -> list[Mark]:
    return [Mark(o.metrics[metric], o.order, o.name) for o in finished if metric in o.metrics]


def _group_table(finished: list[Outcome], prefix: str, named: Iterable[str]) -> Markup:
    head = tag("tr", tag("th", "group", scope="col"), [tag("th", name(o.name), scope="col") for o in finished])
    rows = [
        tag("tr", tag("th", name(group), scope="row"), [_group_cell(o, prefix + group) for o in finished])
        for group in named
    ]
    return tag("table", tag("thead", head), tag("tbody", rows), class_="tight")


def _group_cell(outcome: Outcome, metric: str) -> Markup:
    estimate = outcome.metrics.get(metric)
    if estimate is None or not estimate.sound:
        return tag("td", NONE if estimate is None else "failed")
    return tag("td", tag("span", measure(metric, estimate.mean), title=repr(estimate.mean)))
