"""The examples of a user's files of text, the limit on their lengths, and the lines that did not become an example."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from attnlab.data.io.files import DataError
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
    half: tuple[int, ...] = ()
    """The lines that were left out because one side is empty."""
    joined: tuple[int, ...] = ()
    """The lines whose source has several targets, and that `merged` made one example."""

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


class Reading:
    """The lines of a user's file that become examples, and those that do not. `corpus` gives the result.

    Args:
      path: the path that is read, used in messages.
      limit: the limit to apply.
    """

    def __init__(self, path: str, limit: Limit):
        self.path, self.limit = path, limit
        self.examples: list[Example] = []
        self.lines: list[int] = []
        self.empty: list[int] = []
        self.longer: list[int] = []
        self.half: list[int] = []

    def skip(self, line: int, problem: str) -> None:
        """Leaves out a line with one empty side; raises DataError with the problem if the limit refuses it."""
        if self.limit.empty == "refuse":
            raise DataError(f"{problem}{SKIPPING}")
        self.half.append(line)

    def add(self, line: int, sides: list[S], example: Callable[[list[S]], Example]) -> None:
        """Adds the example that `example` makes of the sides of a line, unless the limit leaves the line out."""
        if not self.limit.met(sides):
            self.longer.append(line)
        if (kept := self.limit.kept(sides, f"{self.path}, line {line}")) is not None:
            self.examples.append(example(kept))
            self.lines.append(line)

    def corpus(self, what: str) -> Corpus:
        """Returns the corpus; raises DataError if it has no examples, which `what` names."""
        if not self.examples:
            raise DataError(f"{self.path} contains no {what}{_lost(self.longer, self.limit, self.half)}")
        return Corpus(self.path, self.examples, self.lines, self.empty, self.longer, self.limit, half=tuple(self.half))


def skipped(path: str, half: Sequence[int]) -> list[str]:
    """Returns the note about lines left out because one side is empty; an empty list if there are none."""
    return [f"{path}: {_count(half)} with one empty side {'is' if len(half) == 1 else 'are'} skipped"] if half else []


def _lost(longer: Sequence[int], limit: Limit, half: Sequence[int]) -> str:
    """Returns the part of a message that explains why nothing is left: lines are too long or have one empty side."""
    long = f" of length at most {limit.most}: {_counted(longer)} longer and skipped" if longer else ""
    halves = f"{_count(half)} with one empty side {'is' if len(half) == 1 else 'are'} skipped" if half else ""
    return f"{long}{', and' if long else ':'} {halves}" if halves else long


def _count(numbers: Sequence[int], most: int = 5) -> str:
    """Returns the number of lines and the first line numbers, in words."""
    shown = ", ".join(map(str, numbers[:most])) + (" …" if len(numbers) > most else "")
    return f"{len(numbers)} {'line' if len(numbers) == 1 else 'lines'} ({shown})"


def _counted(numbers: Sequence[int]) -> str:
    """Returns `_count` with the verb that agrees with it."""
    return f"{_count(numbers)} {'is' if len(numbers) == 1 else 'are'}"
