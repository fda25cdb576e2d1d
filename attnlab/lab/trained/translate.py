"""Lines through a trained model: one answer for each, in their order, as they come."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path
from typing import BinaryIO, cast

import numpy as np

from attnlab.console.escape import plain
from attnlab.data import names
from attnlab.data.batches import pad
from attnlab.data.io.files import DataError
from attnlab.lab.trained.decoding import Answer, Answerer, DecodingOptions
from attnlab.lab.trained.load import Step, trained
from attnlab.storage.json_file import encoded, folder_errors
from attnlab.tasks.text.pairing import PairInterface

LONGER = ("refuse", "truncate")
UNKNOWN = ("refuse", "skip")
BATCH = 32
MOST = 1 << 20  # bytes taken at a time


@dataclass(frozen=True)
class Answered:
    """The answer to a line: `text`, itself a line, empty where the line is empty or blank.

    `trouble` says what was wrong with the line. Where it was `refused` the text is empty, else it answers what was
    left. `finished`: the model came to an end within the length that its answers may have.
    """

    number: int
    text: str = ""
    trouble: str | None = None
    refused: bool = False
    finished: bool = True


def translate(
    run: str | Path,
    lines: Iterable[str | bytes],
    asked: DecodingOptions = DecodingOptions(),
    batch: int = BATCH,
    longer: str = "refuse",
    unknown: str = "refuse",
    step: Step = None,
) -> Iterator[Answered]:
    """The answers of a run's trained model to lines (bytes in UTF-8), `batch` at a time; the rest as `Translator`.

    Raises TypeError for one text in the place of several.
    """
    if isinstance(lines, str | bytes):
        raise TypeError("lines must be several: give one as [line]")
    translator, rows = Translator(run, asked, batch, longer, unknown, step), iter(lines)
    groups = iter(lambda: [_bytes(line) for line in islice(rows, batch)], [])
    return chain.from_iterable(translator(groups))


class Translator:
    """A run's trained model, which answers lines.

    `longer` says what becomes of a line of more tokens than the model was made for: "refuse", or "truncate", at its
    end. `unknown`: of one with symbols never seen in training: "refuse", or "skip" the symbols. A batch has always
    `batch` rows, and one of the widths of training: few programs are compiled. `longest`: the tokens of an answer.
    `step` is that of a checkpoint, as `load` takes it.

    Raises ValueError for what cannot work, such as a task that is not answered symbol by symbol, and as `trained`.
    """

    def __init__(
        self,
        run: str | Path,
        asked: DecodingOptions = DecodingOptions(),
        batch: int = BATCH,
        longer: str = "refuse",
        unknown: str = "refuse",
        step: Step = None,
    ):
        names.check("longer", longer, LONGER)
        names.check("unknown", unknown, UNKNOWN)
        if batch < 1:
            raise ValueError(f"{batch=} must be at least 1")
        found = trained(run, step, data=False)
        asked.check(found.problem)
        if not found.problem.decodes:
            raise ValueError(f"{run}: what its task asks is no text for a text: attnlab sample asks it one question")
        self._problem = cast(PairInterface, found.problem)
        self._answerer = Answerer(found, asked)
        self._batch, self._longer, self._unknown = batch, longer, unknown
        self._room = self._problem.source_room
        self.longest = self._problem.shape.target_length
        self._widths = sorted({*self._problem.widths, self._problem.shape.source_length})

    def __call__(self, groups: Iterable[Sequence[bytes]]) -> Iterator[list[Answered]]:
        """The answers to lines, with their ends or without, that come in groups; a batch holds lines of one group."""
        number, start = 0, 0
        for group in groups:
            for first in range(0, len(group), self._batch):
                rows = []
                for line in group[first : first + self._batch]:
                    number += 1
                    rows.append(self._read(line, number, start))
                    start += len(line)
                yield self._answer(rows)

    def _answer(self, rows: list[Line]) -> list[Answered]:
        asked = [row for row in rows if row.ids]
        answers = {}
        if asked:
            # A row more of the same costs what a row of padding would, and takes no longer to end.
            filled = asked + asked[:1] * (self._batch - len(asked))
            marked = [self._problem.marked(row.ids) for row in filled]
            longest = max(map(len, marked))
            sources = pad(marked, next(w for w in self._widths if w >= longest))
            found = self._answerer(sources, np.array([row.number for row in filled]))
            answers = {row.number: best[0] for row, best in zip(asked, found, strict=False)}
        return [self._told(row, answers.get(row.number)) for row in rows]

    def _told(self, row: Line, answer: Answer | None) -> Answered:
        if answer is None:
            return Answered(row.number, trouble=row.trouble, refused=row.trouble is not None)
        if np.isnan(answer.score):
            return Answered(row.number, trouble="the model's numbers are not finite on it", refused=True)
        return Answered(row.number, answer.text, row.trouble, finished=answer.finished)

    def _read(self, line: bytes, number: int, start: int) -> Line:
        """What there is to answer in a line that begins at a byte of the input."""
        content = line.removesuffix(b"\n").removesuffix(b"\r")
        try:
            text = content.decode("utf-8")
        except UnicodeDecodeError as error:
            byte = f"byte {start + error.start} of the input is {content[error.start]:#04x}"
            return Line(number, trouble=f"not UTF-8: {byte}")
        text = text.removeprefix("\ufeff") if start == 0 else text
        return self._encoded(number, text) if text.strip() else Line(number)

    def _encoded(self, number: int, text: str) -> Line:
        source, text, said = self._problem.source, self._problem.read(text), []
        try:
            ids = source.encode(text)
        except DataError as error:
            # Which symbols there are need not be said for every line.
            said.append(str(error).partition("; seen in training")[0])
            ids = source.encode(text, known=True) if self._unknown == "skip" else []
            if ids:
                said.append("left out of it")
        if len(ids) > self._room:
            much = f"{len(ids)} tokens, and the model was made for {self._room}"
            said.append(f"{much}: cut" if self._longer == "truncate" else much)
            ids = ids[: self._room] if self._longer == "truncate" else []
        if not ids and not said:
            said.append("nothing in it is text for this task")
        return Line(number, ids, "; ".join(said) or None)


@dataclass(frozen=True)
class Line:
    """What was read of a line: its ids, without marks, and what was wrong with it; no ids: nothing to answer."""

    number: int
    ids: Sequence[int] = ()
    trouble: str | None = None


def arriving(stream: BinaryIO) -> Iterator[list[bytes]]:
    """The lines of a stream with their ends, as they come: each time all that are whole, without waiting for more.

    Only "\\n" ends a line; the last may lack it. Raises FolderError where the stream cannot be read.
    """
    held: list[bytes] = []
    while chunk := _next(stream):
        *whole, rest = chunk.split(b"\n")
        if whole:
            whole[0] = b"".join([*held, whole[0]])
            held = []
            yield [line + b"\n" for line in whole]
        if rest:
            held.append(rest)
    if held:
        yield [b"".join(held)]


def stream(translator: Translator, source: BinaryIO, sink: BinaryIO, tell: Callable[[str], None]) -> int:
    """Answer every line of `source` with one of `sink`, flushed batch by batch; 3 where any was refused, else 0.

    `tell` is given a line about each trouble, and at the end one about the whole.
    """
    began, count, refused, cut = time.monotonic(), 0, 0, 0
    for answers in translator(arriving(source)):
        sink.write(b"".join(encoded(answer.text) + b"\n" for answer in answers))
        sink.flush()
        for answer in answers:
            if answer.trouble:
                treated = "; answered with an empty line" if answer.refused else ""
                tell(plain(f"line {answer.number}: {answer.trouble}{treated}"))
        count += len(answers)
        refused += sum(answer.refused for answer in answers)
        cut += sum(not answer.finished for answer in answers)
    seconds = time.monotonic() - began
    unfinished = f", {cut} with an answer cut short at {translator.longest} tokens" if cut else ""
    tell(f"{count} {'line' if count == 1 else 'lines'}, {refused} refused{unfinished}, {seconds:.1f} s")
    return 3 if refused else 0


def _next(stream: BinaryIO) -> bytes:
    """What a stream has, at least a byte; none at its end."""
    with folder_errors(Path("standard input")):
        # One reading of a pipe or terminal gives what is there.
        return stream.read1(MOST)  # pyright: ignore[reportAttributeAccessIssue]


def _bytes(line: str | bytes) -> bytes:
    # Half a character becomes what is no UTF-8, and is told as such.
    return line.encode("utf-8", errors="surrogatepass") if isinstance(line, str) else line
