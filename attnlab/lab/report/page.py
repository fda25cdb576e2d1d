"""The page of a study: one file that says what was asked, what came out, and how sure one may be."""

from __future__ import annotations

from pathlib import Path

from attnlab.lab.jsonfile import write_whole
from attnlab.lab.outcome import Outcome, outcomes
from attnlab.lab.report import looking, making, sections
from attnlab.lab.report.appearance import STYLE
from attnlab.lab.report.markup import Markup, join, tag

# Nothing may be fetched and nothing runs, whatever a name or a file tries to put into the page.
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'"


def report(folder: str | Path) -> Path:
    """Write `report.html` into the folder of a study (`OUT/<experiment>`) and answer where it stands.

    Reads the run folders in it and nothing else. A run without a result is listed, never averaged; what
    cannot be read is named on the page. Raises FolderError where there is no run, or no page can be written.
    """
    folder = Path(folder)
    path = folder / "report.html"
    write_whole(path, page(outcomes(folder), folder.resolve().name))
    return path


def page(found: list[Outcome], study: str) -> str:
    """The whole page as HTML."""
    parts = (
        sections.opening(found, study),
        sections.findings(found),
        sections.numbers(found),
        sections.learning(found),
        sections.groups(found),
        looking.maps(found),
        making.making(found),
    )
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", http_equiv="Content-Security-Policy", content=_POLICY),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name="color-scheme", content="light dark"),
        tag("meta", name="generator", content="attnlab"),
        tag("title", f"{study} · attnlab"),
        tag("link", rel="icon", href="data:,"),
        tag("style", Markup(STYLE)),
    )
    return "<!doctype html>\n" + tag("html", head, tag("body", tag("main", join(*parts))), lang="en") + "\n"
