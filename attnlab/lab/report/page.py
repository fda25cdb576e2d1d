"""The page of a study: one file that says what was asked, what came out, and how sure one may be."""

from __future__ import annotations

from pathlib import Path

from attnlab.lab.jsonfile import write_whole
from attnlab.lab.outcome import Outcome, outcomes
from attnlab.lab.report import looking, making, sections
from attnlab.lab.report.layout import document


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
    return document(
        study,
        sections.opening(found, study),
        sections.findings(found),
        sections.numbers(found),
        sections.learning(found),
        sections.groups(found),
        looking.maps(found),
        making.making(found),
    )
