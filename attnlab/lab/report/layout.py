"""Parts that every section of the page is put together from."""

from __future__ import annotations

from typing import Any

from attnlab.lab.report.markup import Markup, join, tag


def section(heading: str, *children: Any, class_: str | None = None) -> Markup:
    """A part of the page under its heading."""
    return tag("section", tag("h2", heading), *children, class_=class_)


def scroll(child: Markup, label: str) -> Markup:
    """What may be wider than a narrow screen."""
    # Reachable by keyboard, or what lies outside a narrow screen could not be read.
    return tag("div", child, class_="scroll", tabindex=0, role="region", aria_label=label)


def details(summary: Any, *children: Any) -> Markup | None:
    """Something folded away; None where there is nothing in it."""
    body = join(*children)
    return tag("details", tag("summary", summary), body) if body else None
