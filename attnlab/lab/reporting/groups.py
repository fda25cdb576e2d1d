"""The section of the page that shows each metric by group, for example by language or by length."""

from __future__ import annotations

import re
from collections.abc import Iterable

import numpy as np

from attnlab.console.format import NONE
from attnlab.console.metric import Metric
from attnlab.lab.reporting.layout import DETAILED, details, first_of, scroll, section
from attnlab.lab.reporting.markup import Markup, name, tag
from attnlab.lab.reporting.strips import Mark, strips
from attnlab.lab.results.outcome import Outcome

PAPER = 8  # how many variants fit next to each other on paper


def groups(found: list[Outcome]) -> Markup | None:
    """Show each metric by group, the hardest group first."""
    all_finished = [outcome for outcome in found if outcome.result is not None]
    finished = all_finished[:DETAILED]
    rest = first_of(len(finished), len(all_finished), "the file result.json of a run has its metrics by group")
    wholes: dict[str, Metric] = {}
    for outcome in finished:
        for metric in outcome.metrics:
            if "." in metric:
                whole, _, _ = metric.partition(".")
                wholes.setdefault(whole, outcome.declared(whole))
    if not wholes:
        return None
    primaries = {outcome.metric for outcome in finished}
    order = sorted(wholes.values(), key=lambda metric: metric.name not in primaries)
    blocks = [_groups(finished, metric, first=metric.name in primaries or n == 0) for n, metric in enumerate(order)]
    return section("By group", rest, tag("ul", [_dot(o) for o in finished], class_="legend"), blocks)


def _dot(outcome: Outcome) -> Markup:
    dot = tag("circle", cx=15, cy=5, r=4, class_="dot")
    return tag("li", tag("svg", dot, aria_hidden="true"), name(outcome.name), class_=f"v{outcome.order % 8}")


def _groups(finished: list[Outcome], metric: Metric, first: bool) -> Markup | None:
    prefix = f"{metric.name}."
    finished = [outcome for outcome in finished if any(m.startswith(prefix) for m in outcome.metrics)]
    named = dict.fromkeys(m.removeprefix(prefix) for o in finished for m in o.metrics if m.startswith(prefix))

    def ease(group: str) -> tuple[float, str]:
        means = [o.metrics[prefix + group].mean for o in finished if prefix + group in o.metrics]
        mean = float(np.mean([m for m in means if m is not None] or [0.0]))
        return mean if metric.higher else -mean, group

    rows = [(name(group), _marks(finished, prefix + group)) for group in sorted(named, key=ease)]
    plot = tag("div", strips(metric, rows, seeds=False), class_="groups")
    cells = scroll(_group_table(finished, metric, sorted(named, key=_numbered)), metric.title)
    # Paper cannot be scrolled, and the plot above shows the same numbers.
    table = details("As a table", cells, class_="screen" if len(finished) > PAPER else None)
    heading = f"{metric.title} by group, hardest first"
    return tag("div", tag("h3", heading), plot, table) if first else details(heading, plot, table)


def _numbered(group: str) -> list[str | int]:
    """Split a name into texts and numbers in turn, so that numbers sort by value: 64 before 128."""
    return [int(part) if n % 2 else part for n, part in enumerate(re.split(r"([0-9]+)", group))]


def _marks(finished: list[Outcome], metric: str) -> list[Mark]:
    return [Mark(o.metrics[metric], o.order, o.name) for o in finished if metric in o.metrics]


def _group_table(finished: list[Outcome], metric: Metric, named: Iterable[str]) -> Markup:
    head = tag("tr", tag("th", "group", scope="col"), [tag("th", name(o.name), scope="col") for o in finished])
    rows = [
        tag("tr", tag("th", name(group), scope="row"), [_group_cell(o, metric, group) for o in finished])
        for group in named
    ]
    return tag("table", tag("thead", head), tag("tbody", rows), class_="tight")


def _group_cell(outcome: Outcome, metric: Metric, group: str) -> Markup:
    estimate = outcome.metrics.get(f"{metric.name}.{group}")
    if estimate is None or not estimate.sound:
        return tag("td", NONE if estimate is None else "failed")
    return tag("td", tag("span", metric.format(estimate.mean), title=repr(estimate.mean)))
