"""Pairs of lines in a user's files: a file of two columns, or two files whose lines correspond."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from attnlab.data.io.files import DataError, contents, text, user_path
from attnlab.data.names import check, composed
from attnlab.data.text.example import Example

LONGER = ("refuse", "truncate", "skip")
EMPTY = ("refuse", "skip")
SKIPPING = "; task.empty=skip (for attnlab score: --empty skip) skips such lines"
S = TypeVar("S", str, list[int], list[str])


@dataclass(frozen=True)
class Limit:
    """The largest allowed length of a line, and the treatment of pairs with a longer or an empty line.

    Raises:
      ValueError: if a field has another value than its documentation allows.
    """

    most: int = 0
    """The largest length; 0 means no limit."""
    longer: str = "refuse"
    """Treatment of a pair with a longer line.

    "refuse" raises DataError, "truncate" cuts the line at its end, "skip" leaves the pair out.
    """
    empty: str = "refuse"
    """Treatment of a pair with one empty side.

    "refuse" raises DataError, "skip" leaves the pair out.
    """

    def __post_init__(self):
        check("longer", self.longer, LONGER)
        check("empty", self.empty, EMPTY)
        if isinstance(self.most, bool) or not isinstance(self.most, int) or self.most < 0:
            raise ValueError(f"most={self.most!r} must be an integer of at least 0")

    def met(self, sides: Sequence[Sequence]) -> bool:
        """Whether no side is too long."""
        return not self.most or all(len(side) <= self.most for side in sides)

    def kept(self, sides: list[S], where: str) -> list[S] | None:
        """Applies the limit to a pair.

        Args:
          sides: the sides of the pair, each a text, its ids or its words.
          where: the file and the line, used in messages.

        Returns:
          The sides, truncated if necessary, or None if the pair is left out.

        Raises:
          DataError: if a side is too long and `longer` is "refuse".
        """
        if self.met(sides):
            return sides
        if self.longer == "refuse":
            raise DataError(
                f"{where}: length {max(map(len, sides))} exceeds {self.most}; truncate or skip the line, or allow more"
            )
        return None if self.longer == "skip" else [side[: self.most] for side in sides]


@dataclass(frozen=True)
class Corpus:
    """The examples of a user's files, and the lines that did not become an example. Line numbers start at 1."""

    path: str
    """The path that was read."""
    examples: list[Example]
    """The examples, N of them."""
    lines: list[int]
    """The line of each example [N]; the first of its lines if several were merged."""
    empty: list[int]
    """The lines that were left out because all of the line is empty."""
    longer: list[int]
    """The lines that the limit truncated or left out."""
    limit: Limit = Limit()
    """The limit that was applied."""
    joined: tuple[int, ...] = ()
    """The lines whose source has several targets, and that `merged` made one example."""
    half: tuple[int, ...] = ()
    """The lines that were left out because one side is empty."""

    def merged(self) -> Corpus:
        """Merges lines with the same source and group, but different targets, into one example with several references.

        The example takes the position of its first line. Its references are in the order of the lines, without
        repetition. Texts are compared in Unicode's NFC. If all lines of a source are the same, they stay separate
        examples. Truncated lines also stay separate, because their full texts may differ.
        """
        cut = set(self.longer)
        rows: dict[tuple[str, str], list[int]] = {}
        for n, (example, line) in enumerate(zip(self.examples, self.lines, strict=True)):
            if line not in cut:
                rows.setdefault((composed(str(example.source)), example.group), []).append(n)
        examples, dropped, joined = list(self.examples), set(), []
        for first, *others in rows.values():
            targets = {composed(str(self.examples[n].targets[0])): n for n in (*others[::-1], first)}
            if len(targets) == 1:
                continue
            references = tuple(self.examples[n].targets[0] for n in sorted(targets.values()))
            examples[first] = examples[first]._replace(targets=references)
            dropped.update(others)
            joined += [self.lines[n] for n in (first, *others)]
        kept = [n for n in range(len(examples)) if n not in dropped]
        lines = [self.lines[n] for n in kept]
        return replace(self, examples=[examples[n] for n in kept], lines=lines, joined=tuple(sorted(joined)))

    def notes(self) -> list[str]:
        """Returns a line for each fact that the user should know; none if every line became an example."""
        treated = "truncated" if self.limit.longer == "truncate" else "skipped"
        length = f"longer than {self.limit.most} and {treated}"
        treatments = {"empty and skipped": self.empty, length: self.longer}
        found = [f"{self.path}: {_counted(numbers)} {what}" for what, numbers in treatments.items() if numbers]
        found += skipped(self.path, self.half)
        if self.joined:
            several = sum(len(example.targets) > 1 for example in self.examples)
            sources = "1 source has" if several == 1 else f"{several:,} sources have"
            what = f"each becomes one example with several references ({len(self.joined):,} lines)"
            found.append(f"{self.path}: {sources} several targets; {what}, except in training")
        return found


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
    read = [lines(text(contents(user_path(name), name.endswith(".gz")), name)) for name in names]
    rows = aligned(names, *read) if len(names) == 2 else _columns(path, read[0], 3 if grouped else 2)
    examples, kept, empty, longer, half = [], [], [], [], []
    for number, row in enumerate(rows, start=1):
        source, target, *group = (column.strip() for column in row)
        if not source and not target:
            empty.append(number)
            continue
        if not source or not target:
            if limit.empty == "refuse":
                raise DataError(_half(names, number, source) + SKIPPING)
            half.append(number)
            continue
        if group and not group[0]:
            raise DataError(f"{path}, line {number}: its group, the third column, is empty")
        if not limit.met((source, target)):
            longer.append(number)
        if sides := limit.kept([source, target], f"{path}, line {number}"):
            examples.append(Example(sides[0], (sides[1],), *group))
            kept.append(number)
    if not examples:
        raise DataError(f"{path} contains no pairs{lost(longer, limit, half)}")
    return Corpus(path, examples, kept, empty, longer, limit, half=tuple(half))


def asked(path: str, limit: Limit = Limit(), grouped: bool = False) -> Corpus:
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
    rows = lines(text(contents(user_path(path), path.endswith(".gz")), path)) if len(names) == 1 else []
    if len(names) == 2 or any("\t" in row for row in rows):
        return pairs(path, limit, grouped).merged()
    examples, kept, empty, longer = [], [], [], []
    for number, row in enumerate(map(str.strip, rows), start=1):
        if not row:
            empty.append(number)
            continue
        if not limit.met((row,)):
            longer.append(number)
        if sides := limit.kept([row], f"{path}, line {number}"):
            examples.append(Example(sides[0], ()))
            kept.append(number)
    if not examples:
        raise DataError(f"{path} contains no texts{lost(longer, limit)}")
    return Corpus(path, examples, kept, empty, longer, limit)


def lines(content: str) -> list[str]:
    """Splits a text into lines at "\\n" or "\\r\\n", without these and without a byte-order mark.

    Nothing else ends a line. Form feeds and Unicode's separators are part of it.
    """
    rows = content.removeprefix("\ufeff").split("\n")
    return [row.removesuffix("\r") for row in (rows if rows[-1] else rows[:-1])]


def aligned(names: Sequence[str], sources: list[str], targets: list[str]) -> list[Sequence[str]]:
    """Pairs the lines of two files; raises DataError if their numbers differ."""
    if len(sources) != len(targets):
        raise DataError(
            f"{names[0]} has {len(sources)} lines, but {names[1]} has {len(targets)}; the lines must correspond"
        )
    return list(zip(sources, targets, strict=True))


def lost(longer: Sequence[int], limit: Limit, half: Sequence[int] = ()) -> str:
    """Returns the part of a message that explains why nothing is left: lines are too long or have one empty side."""
    long = f" of length at most {limit.most}: {_counted(longer)} longer and skipped" if longer else ""
    halves = f"{_count(half)} with one empty side {'is' if len(half) == 1 else 'are'} skipped" if half else ""
    return f"{long}{', and' if long else ':'} {halves}" if halves else long


def skipped(path: str, half: Sequence[int]) -> list[str]:
    """Returns the note about lines left out because one side is empty; an empty list if there are none."""
    return [f"{path}: {_count(half)} with one empty side {'is' if len(half) == 1 else 'are'} skipped"] if half else []


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


def _count(numbers: Sequence[int], most: int = 5) -> str:
    """Returns the number of lines and the first line numbers, in words."""
    shown = ", ".join(map(str, numbers[:most])) + (" …" if len(numbers) > most else "")
    return f"{len(numbers)} {'line' if len(numbers) == 1 else 'lines'} ({shown})"


def _counted(numbers: Sequence[int]) -> str:
    """Returns `_count` with the verb that agrees with it."""
    return f"{_count(numbers)} {'is' if len(numbers) == 1 else 'are'}"
