"""Verdicts of all pairs of variants on a study's page, with a table for each group."""

from __future__ import annotations

from attnlab.lab.reporting.layout import scroll
from attnlab.lab.reporting.markup import Markup, name, tag
from attnlab.lab.results.all_pairs import AllPairs


def matrices(pairs: AllPairs) -> list[Markup]:
    """Return the tables, row against column, with the meaning of their signs below. Empty if there is no pair."""
    if not pairs.groups:
        return []
    reasons = [
        tag("p", name(one), " and ", name(other), f" are not compared: {why}.", class_="quiet")
        for (one, other), why in pairs.refused.items()
    ]
    partial = [
        tag(
            "p",
            name(one),
            " and ",
            name(other),
            f" are compared without seeds {', '.join(map(str, seeds))}.",
            class_="quiet",
        )
        for (one, other), seeds in pairs.alone.items()
        if seeds
    ]
    legend = tag("p", f"{pairs.legend()}.", class_="quiet")
    return [*(_matrix(pairs, names) for names in pairs.groups), legend, *reasons, *partial]


def _matrix(pairs: AllPairs, names: tuple[str, ...]) -> Markup:
    numbered = list(enumerate(names, 1))
    head = tag(
        "tr", tag("th", "variant", scope="col"), [tag("th", str(n), scope="col", title=one) for n, one in numbered]
    )
    rows = [
        tag("tr", tag("th", f"{n} ", name(one), scope="row"), [_cell(pairs, one, other) for other in names])
        for n, one in numbered
    ]
    return scroll(tag("table", tag("thead", head), tag("tbody", rows)), "Every variant compared with every other")


def _cell(pairs: AllPairs, one: str, other: str) -> Markup:
    word = pairs.word(one, other)
    return tag("td", pairs.sign(one, other), title=None if word is None else f"{one} compared with {other}: {word}")
