"""One's own pairs of lines: a file of two columns, or two files of which line n of one answers line n of the other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from attnlab.data.example import Example
from attnlab.data.files import DataError, contents, own, text
from attnlab.data.names import check, composed

LONGER = ("refuse", "truncate", "skip")
EMPTY = ("refuse", "skip")
SKIPPING = "; task.empty=skip (of attnlab score: --empty skip) leaves such lines out"
S = TypeVar("S", str, list[int], list[str])


@dataclass(frozen=True)
class Limit:
    """How long a line may be (`most`; 0: any length), and what becomes of a pair with a longer one or an empty one.

    `longer` is "refuse" (a DataError), "truncate" (the longer line is cut at its end) or "skip" (the pair is
    left out). `empty` says what becomes of a pair with one empty side: "refuse" or "skip". Raises ValueError for
    anything else.
    """

    most: int = 0
    longer: str = "refuse"
    empty: str = "refuse"

    def __post_init__(self):
        check("longer", self.longer, LONGER)
        check("empty", self.empty, EMPTY)
        if isinstance(self.most, bool) or not isinstance(self.most, int) or self.most < 0:
            raise ValueError(f"most={self.most!r} must be a whole number, 0 or more")

    def met(self, sides: Sequence[Sequence]) -> bool:
        """Whether every side is short enough."""
        return not self.most or all(len(side) <= self.most for side in sides)

    def kept(self, sides: list[S], where: str) -> list[S] | None:
        """The sides of a pair, each a text or its ids, as they are or cut; None where the pair is left out.

        Raises DataError with `where` (the file and the line) where a longer one is refused.
        """
        if self.met(sides):
            return sides
        if self.longer == "refuse":
            raise DataError(
                f"{where}: its length {max(map(len, sides))} is more than {self.most}; cut or skip it, or allow more"
            )
        return None if self.longer == "skip" else [side[: self.most] for side in sides]


@dataclass(frozen=True)
class Corpus:
    """The pairs of one's own files, and what became of the other lines. Lines are counted from 1.

    `lines` [N] holds the line of each example, the first where several became one; `empty` those left out because both
    sides are empty; `half` those left out because one side is; `longer` those that a limit cut or left out; `joined`
    those of a source with several targets.
    """

    path: str
    examples: list[Example]
    lines: list[int]
    empty: list[int]
    longer: list[int]
    limit: Limit = Limit()
    joined: tuple[int, ...] = ()
    half: tuple[int, ...] = ()

    def merged(self) -> Corpus:
        """The corpus with each source (of a group) that has several targets as one example of several references.

        The example stands where the first of its lines does, and its references are in the order of the lines, each
        once. Lines that are alike as a whole stay as they are, and so do those that were cut: what they were before
        may differ. Texts are compared in Unicode's NFC.
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
        """A line for each thing that a reader should know; none where every line became an example."""
        treated = "cut" if self.limit.longer == "truncate" else "left out"
        length = f"longer than {self.limit.most} and {treated}"
        told = {"empty and left out": self.empty, length: self.longer}
        found = [f"{self.path}: {_count(numbers)} {what}" for what, numbers in told.items() if numbers]
        found += skipped(self.path, self.half)
        if self.joined:
            several = sum(len(example.targets) > 1 for example in self.examples)
            sources = "1 source has" if several == 1 else f"{several:,} sources have"
            what = f"each one example with several references ({len(self.joined):,} lines)"
            found.append(f"{self.path}: {sources} several targets: {what}; in training lines stay separate pairs")
        return found


def pairs(path: str, limit: Limit = Limit(), grouped: bool = False) -> Corpus:
    """The pairs of `path`, in the order of its lines, white space at their ends taken away.

    `path` is one file, "corpus.tsv", each line a source, a tab and its target; or two with a comma between
    them, "corpus.de,corpus.en", the sources and the targets line by line. Each is UTF-8, gzipped where its name
    ends in .gz; a byte-order mark and "\\r\\n" are accepted. A line that is empty on both sides is left out; one that
    is empty on one side is refused, or left out, as `limit.empty` says. `limit` counts characters. With `grouped`, each
    line of the one file has a third column: the group of the pair, such as its language.

    Raises DataError where a file is missing, damaged or not UTF-8 (with the byte), the files differ in their
    number of lines, a line has not one tab (two where `grouped`), one side alone is empty and that is refused, the
    group is empty, a line is longer than allowed, or nothing is left: with the number of the line.
    """
    names = _names(path)
    if grouped and len(names) == 2:
        raise DataError(f"{path}: groups are the third column of one file, and these are two")
    read = [lines(text(contents(own(name), name.endswith(".gz")), name)) for name in names]
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
        raise DataError(f"{path} holds no pairs{lost(longer, limit, half)}")
    return Corpus(path, examples, kept, empty, longer, limit, half=tuple(half))


def asked(path: str, limit: Limit = Limit(), grouped: bool = False) -> Corpus:
    """The pairs of `path`, `merged`, or its sources alone: in a file without any tab, each line is a source.

    Examples of sources alone have no targets. Raises DataError as `pairs`.
    """
    names = _names(path)
    rows = lines(text(contents(own(path), path.endswith(".gz")), path)) if len(names) == 1 else []
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
        raise DataError(f"{path} holds no texts{lost(longer, limit)}")
    return Corpus(path, examples, kept, empty, longer, limit)


def lines(content: str) -> list[str]:
    """The lines of a text without their ends, "\\n" or "\\r\\n"; a byte-order mark is not of the first.

    Nothing else ends a line: form feeds and the separators of Unicode are part of it.
    """
    rows = content.removeprefix("\ufeff").split("\n")
    return [row.removesuffix("\r") for row in (rows if rows[-1] else rows[:-1])]


def aligned(names: Sequence[str], sources: list[str], targets: list[str]) -> list[Sequence[str]]:
    """The lines of two files side by side; DataError with both counts where one has more."""
    if len(sources) != len(targets):
        raise DataError(f"{names[0]} has {len(sources)} lines and {names[1]} {len(targets)}: each must answer one")
    return list(zip(sources, targets, strict=True))


def lost(longer: Sequence[int], limit: Limit, half: Sequence[int] = ()) -> str:
    """Why nothing is left of a file that holds something: every line is too long, or has one empty side."""
    are = "is" if len(longer) == 1 else "are"
    long = f" of at most {limit.most}: its {_count(longer)} {are} longer and left out" if longer else ""
    halves = f"{_count(half)} with one empty side {'is' if len(half) == 1 else 'are'} left out" if half else ""
    return f"{long}{', and' if long else ': its'} {halves}" if halves else long


def skipped(path: str, half: Sequence[int]) -> list[str]:
    """The note of a file whose lines with one empty side are left out; none where there are no such lines."""
    return [f"{path}: {_count(half)} with one empty side left out"] if half else []


def _names(path: str) -> list[str]:
    """One file or two; a file whose own name has a comma is one."""
    try:
        names = [path] if own(path).is_file() else path.split(",")
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror}") from error
    if len(names) > 2 or not all(names):
        raise DataError(f"{path!r} is neither a file nor two with a comma between them")
    return names


def _columns(path: str, rows: list[str], count: int) -> list[Sequence[str]]:
    columns = []
    for number, row in enumerate(rows, start=1):
        found = row.split("\t") if row.strip(" ") else [""] * count
        if len(found) != count:
            must = "one" if count == 2 else "two"
            raise DataError(f"{path}, line {number}: {len(found) - 1} tabs where there must be {must}: {_start(row)}")
        columns.append(found)
    return columns


def _half(names: Sequence[str], number: int, source: str) -> str:
    if len(names) == 1:
        return f"{names[0]}, line {number}: {'source' if not source else 'target'} is empty"
    empty, present = names if not source else names[::-1]
    return f"{empty}, line {number} is empty, and {present} has a line there"


def _start(row: str, most: int = 60) -> str:
    return repr(row if len(row) <= most else row[:most] + " …")


def _count(numbers: Sequence[int], most: int = 5) -> str:
    shown = ", ".join(map(str, numbers[:most])) + (" …" if len(numbers) > most else "")
    return f"{len(numbers)} {'line' if len(numbers) == 1 else 'lines'} ({shown})"
