"""The configuration of tasks of text pairs, and how they read your own files."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Literal, Protocol

from attnlab.data import names, repeats
from attnlab.data.text import parallel
from attnlab.data.text.corpus import EMPTY, Corpus, Limit, skipped
from attnlab.data.text.example import Example, Parts
from attnlab.data.text.marks import DEFAULT, SOURCE_MARKS
from attnlab.tasks.base.parts import FileFields, paths
from attnlab.tasks.base.task import Task, TaskData
from attnlab.tasks.text.pairing import PairInterface, PairOptions


class UserParts(FileFields, Protocol):
    """A task whose parts may be your own files."""

    @property
    def empty(self) -> str:
        """Whether to "refuse" or "skip" lines with one empty side."""
        ...


class PairParts(Protocol):
    """The data of text pairs, whose test part can be replaced."""

    def with_test(self, examples: Sequence[Example], path: str, places: Sequence[str]) -> TaskData:
        """Returns the data with other examples as the test part."""
        ...


@dataclass(frozen=True)
class PairTask(Task):
    """The base class of tasks of text pairs."""

    training_only_fields = ("source_marks", "empty")
    missing_values: ClassVar = {"source_marks": "none"}

    source_marks: Literal["end", "begin", "both", "none"] = field(default=DEFAULT, kw_only=True)
    """Which marks every source has: "end" after its last symbol, "begin" before its first, "both" or "none".

    Without an end mark, softmax attention cannot see that nothing follows the last symbol.
    """
    empty: Literal["refuse", "skip"] = field(default="refuse", kw_only=True)
    """Whether to "refuse" or "skip" lines of your own files that have one empty side."""

    def __post_init__(self):
        names.check("task.source_marks", self.source_marks, SOURCE_MARKS)
        names.check("task.empty", self.empty, EMPTY)

    @property
    def how(self) -> PairOptions:
        """The arguments of `PairInterface` that the data and the text interface share. `load` must pass them on."""
        return {"source_marks": self.source_marks}

    def read_for_scoring(self, file: str) -> tuple[list[Example], list[str], list[str]]:
        """Reads the examples of a file that is to be scored.

        Returns:
            The examples, the place of each in the file, and messages about how the file was read.
        """
        examples, places, notes = from_corpus(parallel.read_for_scoring(file, Limit(empty=self.empty)))
        # The file is written by a user: it is prepared like an input, and not like the data set.
        read = self.how.get("read", str.strip)
        return [example._replace(source=read(str(example.source))) for example in examples], places, notes

    def with_test(self, problem: PairParts, file: str) -> TaskData:
        """Returns the data with the pairs of a file, or its sources only, as the test part."""
        examples, places, notes = self.read_for_scoring(file)
        found = problem.with_test(examples, file, places)
        found.notes = (*notes, *found.notes)
        return found

    def text_interface(self, vocabulary: dict[str, object], where: str) -> PairInterface:
        """Returns the `PairInterface` of the vocabulary."""
        return PairInterface.restored(vocabulary, where, **self.how)


def from_corpus(corpus: Corpus) -> tuple[list[Example], list[str], list[str]]:
    """Returns the result of `PairTask.read_for_scoring` for a file of lines."""
    return corpus.examples, [f"line {number}" for number in corpus.lines], corpus.notes()


def halves(empty: str) -> list[int] | None:
    """Returns a list to which a reader adds the numbers of lines with one empty side.

    The result is None if such lines are refused.
    """
    return [] if empty == "skip" else None


def user_parts(
    task: UserParts, published: Callable[[], Parts], read: Callable[[str, list[int] | None], list[Example]]
) -> tuple[Parts, list[str]]:
    """Returns the parts of a task that may be your own files or published, and messages about how they were read.

    Nothing is downloaded if all three parts are your own files.

    Args:
        task: The task.
        published: Reads the published parts.
        read: Reads one of your own files, and adds lines with one empty side to a list.
    """
    given = {part: path for part, path in paths(task).items() if path}
    repeats.distinct(given)
    parts = published() if len(given) < 3 else {}
    half = {path: halves(task.empty) for path in given.values()}
    return parts | {part: read(path, half[path]) for part, path in given.items()}, left_out(half)


def left_out(half: Mapping[str, list[int] | None]) -> list[str]:
    """Returns a message for each file with lines that were left out because one side is empty."""
    return [note for path, numbers in half.items() for note in skipped(path, numbers or [])]
