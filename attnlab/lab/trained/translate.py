"""Translate lines with a trained model: one answer for each line, in order, as the lines arrive."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path
from typing import BinaryIO

import numpy as np

from attnlab.console.escape import plain
from attnlab.data import names
from attnlab.data.batches import pad
from attnlab.data.io.files import DataError
from attnlab.lab.trained.decoding import Answer, Answerer, DecodingOptions
from attnlab.lab.trained.load import Step, trained
from attnlab.storage.json_file import encode_utf8, folder_errors
from attnlab.tasks.text.pairing import PairInterface

LONGER = ("refuse", "truncate")
UNKNOWN = ("refuse", "skip")
BATCH = 32
MOST = 1 << 20  # bytes read at a time


@dataclass(frozen=True)
class Answered:
    """The answer to one line."""

    number: int
    """The number of the line, from 1."""
    text: str = ""
    """The answer, which is itself one line. It is empty if the line is blank or was refused."""
    trouble: str | None = None
    """What was wrong with the line, or None."""
    refused: bool = False
    """Whether the line was refused. A line with trouble that was not refused is answered for what was left of it."""
    finished: bool = True
    """Whether the model reached the end symbol within the maximum length of its answers."""


def translate(
    run: str | Path,
    lines: Iterable[str | bytes],
    options: DecodingOptions = DecodingOptions(),
    batch: int = BATCH,
    longer: str = "refuse",
    unknown: str = "refuse",
    step: Step = None,
) -> Iterator[Answered]:
    """Translate lines with the trained model of a run.

    Args:
        run: The run folder.
        lines: The lines, as text or as bytes in UTF-8.
        options, batch, longer, unknown, step: As in `Translator`. `batch` lines are read at a time.

    Returns:
        An iterator over the answers, one for each line, in order.

    Raises:
        TypeError: `lines` is a single text.
        ValueError: As in `Translator`.
    """
    if isinstance(lines, str | bytes):
        raise TypeError("lines must be an iterable of lines, got a single line; pass [line]")
    translator, rows = Translator(run, options, batch, longer, unknown, step), iter(lines)
    groups = iter(lambda: [_bytes(line) for line in islice(rows, batch)], [])
    return chain.from_iterable(translator(groups))


class Translator:
    """Translates lines with the trained model of a run.

    A batch always has `batch` rows and one of the widths of training, so that few programs are compiled.

    Args:
        run: The run folder.
        options: How to decode. By default the run's own decoder is used.
        batch: The number of lines in a batch, 32 by default.
        longer: What happens to a line with more tokens than the model supports. "refuse" refuses it, "truncate" cuts it
            at its end.
        unknown: What happens to a line with symbols that were not seen in training. "refuse" refuses it, "skip" leaves
            these symbols out.
        step: Which checkpoint to load, as in `load`.

    Attributes:
        longest: The maximum number of tokens of an answer.

    Raises:
        ValueError: An argument is invalid, or the task is not decoded symbol by symbol.
        FolderError, DataError, CheckpointError: As in `trained`.
    """

    def __init__(
        self,
        run: str | Path,
        options: DecodingOptions = DecodingOptions(),
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
        options.check(found.problem)
        if not isinstance(found.problem, PairInterface):
            raise ValueError(f"{run}: its task does not map text to text; use attnlab sample")
        self._problem = found.problem
        self._answerer = Answerer(found, options)
        self._batch, self._longer, self._unknown = batch, longer, unknown
        self._room = self._problem.source_room
        self.longest = self._problem.shape.target_length
        self._widths = sorted({*self._problem.widths, self._problem.shape.source_length})

    def __call__(self, groups: Iterable[Sequence[bytes]]) -> Iterator[list[Answered]]:
        """Translate groups of lines, with or without line ends. A batch only holds lines of one group."""
        number, start = 0, 0
        for group in groups:
            for first in range(0, len(group), self._batch):
                rows = []
                for line in group[first : first + self._batch]:
                    number += 1
                    rows.append(self._read(line, number, start))
                    start += len(line)
                nonempty = [row for row in rows if row.ids]
                found = self._answerer(*self._sources(nonempty)) if nonempty else []
                answers = {row.number: best[0] for row, best in zip(nonempty, found, strict=False)}
                yield [self._answered(row, answers.get(row.number)) for row in rows]

    def _sources(self, rows: list[Line]) -> tuple[np.ndarray, np.ndarray]:
        """Return the token ids of a batch of lines, and their numbers."""
        # The batch is filled with copies of its first row: they cost as much as padding and end no later.
        filled = rows + rows[:1] * (self._batch - len(rows))
        marked = [self._problem.marked(row.ids) for row in filled]
        longest = max(map(len, marked))
        sources = pad(marked, next(w for w in self._widths if w >= longest))
        return sources, np.array([row.number for row in filled])

    def _answered(self, row: Line, answer: Answer | None) -> Answered:
        """Combine a line and its answer. None means that there was nothing to decode."""
        if answer is None:
            return Answered(row.number, trouble=row.trouble, refused=row.trouble is not None)
        if np.isnan(answer.score):
            return Answered(row.number, trouble="the model returned non-finite values for this line", refused=True)
        return Answered(row.number, answer.text, row.trouble, finished=answer.finished)

    def _read(self, line: bytes, number: int, start: int) -> Line:
        """Decode the bytes of a line into what is to be translated. `start` is the line's first byte in the input."""
        content = line.removesuffix(b"\n").removesuffix(b"\r")
        try:
            text = content.decode("utf-8")
        except UnicodeDecodeError as error:
            byte = f"byte {start + error.start} of the input is {content[error.start]:#04x}"
            return Line(number, trouble=f"not UTF-8: {byte}")
        text = text.removeprefix("\ufeff") if start == 0 else text
        return self._encoded(number, text) if text.strip() else Line(number)

    def _encoded(self, number: int, text: str) -> Line:
        """Encode the text of a line, applying `longer` and `unknown`."""
        source, text, troubles = self._problem.source, self._problem.read(text), []
        try:
            ids = source.encode(text)
        except DataError as error:
            # The list of known symbols would be repeated for every line.
            troubles.append(str(error).partition("; seen in training")[0])
            ids = source.encode(text, known=True) if self._unknown == "skip" else []
            if ids:
                troubles.append("these symbols are skipped")
        if len(ids) > self._room:
            excess = f"{len(ids)} tokens exceed the model's limit of {self._room}"
            troubles.append(f"{excess}; truncated" if self._longer == "truncate" else excess)
            ids = ids[: self._room] if self._longer == "truncate" else []
        if not ids and not troubles:
            troubles.append("the line has no text for this task")
        return Line(number, ids, "; ".join(troubles) or None)


@dataclass(frozen=True)
class Line:
    """A line as it was read."""

    number: int
    """The number of the line, from 1."""
    ids: Sequence[int] = ()
    """The token ids without begin and end marks. If empty, there is nothing to translate."""
    trouble: str | None = None
    """What was wrong with the line, or None."""


def arriving(stream: BinaryIO) -> Iterator[list[bytes]]:
    r"""Yield the lines of a stream, with their line ends, as they arrive.

    Each item holds all complete lines that are available without waiting for more. Only "\n" ends a line. The last
    line may lack it.

    Raises:
        FolderError: The stream cannot be read.
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
    """Translate every line of `source` and write one line to `sink` for each, flushed after every batch.

    Args:
        translator: The translator.
        source: The input stream.
        sink: The output stream.
        tell: Is called with a line about each problem, and at the end with a summary.

    Returns:
        The exit code: 3 if any line was refused, else 0.
    """
    began, count, refused, cut = time.monotonic(), 0, 0, 0
    for answers in translator(arriving(source)):
        sink.write(b"".join(encode_utf8(answer.text) + b"\n" for answer in answers))
        sink.flush()
        for answer in answers:
            if answer.trouble:
                treated = "; the answer is an empty line" if answer.refused else ""
                tell(plain(f"line {answer.number}: {answer.trouble}{treated}"))
        count += len(answers)
        refused += sum(answer.refused for answer in answers)
        cut += sum(not answer.finished for answer in answers)
    seconds = time.monotonic() - began
    unfinished = f", {cut} with an answer cut off at {translator.longest} tokens" if cut else ""
    tell(f"{count} {'line' if count == 1 else 'lines'}, {refused} refused{unfinished}, {seconds:.1f} s")
    return 3 if refused else 0


def _next(stream: BinaryIO) -> bytes:
    """Read the bytes that a stream has available, at least one. The result is empty at the end of the stream."""
    with folder_errors(Path("standard input")):
        # `read1` returns what a pipe or terminal has now; `read` would wait for `MOST` bytes.
        return stream.read1(MOST)  # pyright: ignore[reportAttributeAccessIssue]


def _bytes(line: str | bytes) -> bytes:
    # A lone surrogate becomes invalid UTF-8, which is then reported for its line.
    return line.encode("utf-8", errors="surrogatepass") if isinstance(line, str) else line
