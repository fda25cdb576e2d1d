"""The building blocks of pages."""

from __future__ import annotations

from base64 import b64encode
from hashlib import sha256

from attnlab.lab.reporting.markup import Child, Markup, join, tag
from attnlab.lab.reporting.style import STYLE

# Nothing may be fetched and only the page's own script may run, whatever a name or a file injects into the page.
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'"


DETAILED = 40  # variants whose details a page shows. The page of more would take megabytes


def document(title: str, *parts: Child, script: str = "") -> str:
    """Return a self-contained HTML page of these parts. The policy allows `script` by its hash."""
    body, policy = [tag("main", join(*parts))], _POLICY
    if script:
        body.append(tag("script", Markup(script)))
        policy += f"; script-src 'sha256-{b64encode(sha256(script.encode()).digest()).decode()}'"
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", http_equiv="Content-Security-Policy", content=policy),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name="color-scheme", content="light dark"),
        tag("meta", name="generator", content="attnlab"),
        tag("title", f"{title} · attnlab"),
        tag("link", rel="icon", href="data:,"),
        tag("style", Markup(STYLE)),
    )
    return "<!doctype html>\n" + tag("html", head, tag("body", *body), lang="en") + "\n"


def section(heading: str, *children: Child, class_: str | None = None) -> Markup:
    """Return a section of the page with a heading."""
    return tag("section", tag("h2", heading), *children, class_=class_)


def first_of(shown: int, count: int, where: str) -> Markup | None:
    """Return a line that says how many of the variants are shown, or None if all are.

    Args:
        shown: The number of variants that are shown.
        count: The number of all variants.
        where: Where the others are.
    """
    if shown == count:
        return None
    return tag("p", f"The first {shown} of {count} variants; {where}.", class_="quiet")


def scroll(child: Markup, label: str) -> Markup:
    """Make an element scrollable that may be wider than a narrow screen."""
    # It is focusable, because otherwise a keyboard could not scroll it.
    return tag("div", child, class_="scroll", tabindex=0, role="region", aria_label=label)


def details(summary: Child, *children: Child, class_: str | None = None) -> Markup | None:
    """Return a collapsed element, or None if it would be empty."""
    body = join(*children)
    return tag("details", tag("summary", summary), body, class_=class_) if body else None
