"""The pages of several studies, made again: one that cannot be made leaves the others theirs."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from attnlab.console.errors import explain
from attnlab.lab.reporting import report


class PageError(Exception):
    """Of one of several studies no page could be made; why, and the exit code."""

    def __init__(self, study: Path, error: Exception):
        line, self.exit_code = explain(error)
        super().__init__(f"no page of {study}: {line.removeprefix('attnlab: error: ')}")
        self.__cause__ = error


def pages(studies: Sequence[Path]) -> Iterator[Path]:
    """The pages of studies, as they are made.

    Raises, behind the last, PageError for the last that could not be made, with the exit code of the first; of the
    others a line each is on stderr. Of one study alone what `report` raises.
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
