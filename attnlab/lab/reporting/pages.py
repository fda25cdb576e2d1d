"""Write the pages of several studies. An error in one does not affect the others."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from attnlab.console.errors import explain
from attnlab.lab.reporting import report


class PageError(Exception):
    """The page of one of several studies could not be written. It has the exit code of the cause."""

    def __init__(self, study: Path, error: Exception):
        line, self.exit_code = explain(error)
        super().__init__(f"cannot write the page of {study}: {line.removeprefix('attnlab: error: ')}")
        self.__cause__ = error


def pages(studies: Sequence[Path]) -> Iterator[Path]:
    """Write the pages of studies, and yield the path of each.

    If there is only one study, the errors are those of `report`.

    Raises:
        PageError: Some pages could not be written. It is raised after the last study, for the last that failed, with
            the exit code of the first that failed. The others are reported on stderr, one line each.
    """
    failed: list[PageError] = []
    for study in studies:
        try:
            page = report(study)
        except Exception as error:
            if len(studies) == 1:
                raise
            failed.append(PageError(study, error))
            continue
        yield page
    for refused in failed[:-1]:
        print(explain(refused)[0], file=sys.stderr)
    if failed:
        failed[-1].exit_code = failed[0].exit_code
        raise failed[-1]
