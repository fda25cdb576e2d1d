"""The page of a study: one file with the question, the results and how certain they are."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from attnlab.console.errors import explain
from attnlab.console.escape import plain
from attnlab.lab.reporting import (
    attention_section,
    csv_table,
    gallery,
    groups,
    png,
    provenance,
    sections,
    tradeoffs,
)
from attnlab.lab.reporting.layout import document
from attnlab.lab.reporting.map_viewer import SCRIPT
from attnlab.lab.results.outcome import Outcome, outcomes
from attnlab.lab.runs.run_folder import RunFolder
from attnlab.storage.json_file import folder_errors, sweep, write_whole


def report(folder: str | Path) -> Path:
    """Write `report.html` into the folder of a study, and return its path.

    The folder also gets `table.csv` (its columns are described in `attnlab.lab.reporting.csv_table`), and `answer.png`
    and `learning.png` if there is anything to draw. Only the run folders in it are read. A run without a result is
    listed and never averaged. What cannot be read is named on the page and on stderr. A picture that cannot be drawn is
    named on stderr.

    Args:
        folder: The folder of the study, `OUT/<experiment>`.

    Raises:
        FolderError: The folder contains no run, or the page cannot be written.
    """
    folder = Path(folder)
    path, found = folder / "report.html", outcomes(folder)
    sweep(folder)
    write_whole(folder / "table.csv", csv_table.csv_text(found))
    drawn = {
        "answer.png": _drawn("answer.png", lambda: png.answer(found)),
        "learning.png": _drawn("learning.png", lambda: png.learning(sections.curves(found))),
    }
    for file, content in drawn.items():
        _picture(folder / file, content)
    files = ["table.csv", *(file for file, content in drawn.items() if content is not None)]
    files += [f"{one.name}/answers.tsv" for one in found if RunFolder(folder / one.name).file("answers").is_file()]
    write_whole(path, page(found, folder.resolve().name, files))
    for line in (line for outcome in found for line in outcome.troubles):
        print(plain(f"attnlab: a file could not be read: {line}"), file=sys.stderr)
    return path


def page(found: list[Outcome], study: str, files: Sequence[str] = ()) -> str:
    """Return the whole page as HTML, with links to the files next to it.

    Args:
        found: The outcomes of all variants.
        study: The name of the study.
        files: The names of files in the folder of the page, which are linked. Default: none.
    """
    looked = attention_section.attention_section(found)
    return document(
        study,
        sections.opening(found, study),
        sections.findings(found),
        sections.numbers(found),
        sections.learning(found),
        tradeoffs.tradeoffs(found),
        groups.groups(found),
        gallery.gallery(found),
        looked,
        provenance.provenance(found),
        sections.other_files(files) if files else None,
        script=SCRIPT if looked else "",
    )


def _drawn(file: str, draw: Callable[[], bytes | None]) -> bytes | None:
    """Draw a picture. Returns None if there is nothing to draw, or if drawing fails, which is reported on stderr."""
    try:
        return draw()
    except Exception as error:
        why = explain(error)[0].removeprefix("attnlab: error: ")
        print(plain(f"attnlab: {file} could not be drawn ({why}); the page is written without it"), file=sys.stderr)
        return None


def _picture(path: Path, content: bytes | None) -> None:
    """Write a picture, or delete that of an earlier report if there is none now."""
    if content is not None:
        write_whole(path, content)
        return
    with folder_errors(path):
        path.unlink(missing_ok=True)
