"""Pairs of lines in a user's files: a file of two columns, or two files whose lines correspond."""

from __future__ import annotations

from collections.abc import Sequence

from attnlab.data.io.files import DataError, lines, user_path, user_text
from attnlab.data.text.corpus import Corpus, Limit, Reading
from attnlab.data.text.example import Example


def pairs(path: str, limit: Limit = Limit(), grouped: bool = False) -> Corpus:
    """Reads pairs of lines, in the order of the lines, with white space removed at both ends.

    A line that is empty on both sides is left out.

    Args:
      path: one file of two columns with a tab between them ("corpus.tsv"), or the files of the sources and the targets
        with a comma between them ("corpus.de,corpus.en"). Files are UTF-8, and gzipped if the name ends in .gz. A
        byte-order mark and "\\r\\n" are accepted.
      limit: the limit on the number of characters, and the treatment of pairs with one empty side.
      grouped: whether the file has a third column: the group of the pair, for example its language.

    Returns:
      The corpus. Every example has one target.

    Raises:
      DataError: if a file is missing, damaged or not UTF-8, if the two files have different numbers of lines, or if
        nothing is left. Also, with the number of the line, if the number of tabs is wrong, the group is empty, or the
        limit refuses the line.
    """
    names = _names(path)
    if grouped and len(names) == 2:
        raise DataError(f"{path}: groups are the third column of a single file, but these are two files")
    read = [lines(user_text(name)) for name in names]
    rows = aligned(names, *read) if len(names) == 2 else _columns(path, read[0], 3 if grouped else 2)
    reading = Reading(path, limit)
    for number, row in enumerate(rows, start=1):
        source, target, *group = (column.strip() for column in row)
        if not source and not target:
            reading.empty.append(number)
        elif not source or not target:
            reading.skip(number, _half(names, number, source))
        elif group and not group[0]:
            raise DataError(f"{path}, line {number}: its group, the third column, is empty")
        else:
            reading.add(number, [source, target], lambda sides, group=group: Example(sides[0], (sides[1],), *group))
    return reading.corpus("pairs")


def read_for_scoring(path: str, limit: Limit = Limit(), grouped: bool = False) -> Corpus:
    """Reads pairs for inference: as `pairs` and merged, or sources only if the file contains no tab.

    Args:
      path: as in `pairs`. If it is one file without tabs, each line is a source.
      limit: as in `pairs`.
      grouped: as in `pairs`.

    Returns:
      The corpus. Examples of sources only have no targets.

    Raises:
      DataError: as `pairs`.
    """
    names = _names(path)
    rows = lines(user_text(path)) if len(names) == 1 else []
    if len(names) == 2 or any("\t" in row for row in rows):
        return pairs(path, limit, grouped).merged()
    reading = Reading(path, limit)
    for number, row in enumerate(map(str.strip, rows), start=1):
        if row:
            reading.add(number, [row], lambda sides: Example(sides[0], ()))
        else:
            reading.empty.append(number)
    return reading.corpus("texts")


def aligned(names: Sequence[str], sources: list[str], targets: list[str]) -> list[Sequence[str]]:
    """Pairs the lines of two files; raises DataError if their numbers differ.

    Args:
        names: The names of the two files, for messages.
        sources: The lines of the first file.
        targets: The lines of the second file.
    """
    if len(sources) != len(targets):
        raise DataError(
            f"{names[0]} has {len(sources)} lines, but {names[1]} has {len(targets)}; the lines must correspond"
        )
    return list(zip(sources, targets, strict=True))


def _names(path: str) -> list[str]:
    """Returns the one or two file names in `path`. An existing file whose own name contains a comma is one file."""
    try:
        names = [path] if user_path(path).is_file() else path.split(",")
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror}") from error
    if len(names) > 2 or not all(names):
        raise DataError(f"{path!r} is neither a file nor two files separated by a comma")
    return names


def _columns(path: str, rows: list[str], count: int) -> list[Sequence[str]]:
    """Splits each row into `count` columns at tabs; raises DataError for another number of tabs."""
    columns = []
    for number, row in enumerate(rows, start=1):
        found = row.split("\t") if row.strip(" ") else [""] * count
        if len(found) != count:
            tabs = "1 tab" if count == 2 else f"{count - 1} tabs"
            raise DataError(f"{path}, line {number}: expected {tabs}, found {len(found) - 1}: {_start(row)}")
        columns.append(found)
    return columns


def _half(names: Sequence[str], number: int, source: str) -> str:
    """Returns the message for line `number`, of which one side is empty."""
    if len(names) == 1:
        return f"{names[0]}, line {number}: the {'source' if not source else 'target'} is empty"
    empty, present = names if not source else names[::-1]
    return f"{empty}, line {number} is empty, but line {number} of {present} is not"


def _start(row: str, most: int = 60) -> str:
    """Returns the beginning of a row in quotes, for messages."""
    return repr(row if len(row) <= most else row[:most] + " …")
