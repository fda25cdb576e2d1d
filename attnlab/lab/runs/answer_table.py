r"""Test examples and the model's answers as a table of text: `answers.tsv`.

The file is UTF-8 with one example per line and tabs between columns. The first line holds the names of the columns. In
a cell a backslash is written `\\`, a tab `\t`, a line feed `\n` and a carriage return `\r`. Everything else is written
unchanged, and nothing is quoted.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from attnlab.storage.json_file import encode_utf8, write_whole
from attnlab.tasks.base.task import Row

MOST = 1 << 24  # the maximum size of the table that a run keeps, in bytes
ESCAPES = {"\\": "\\\\", "\t": "\\t", "\n": "\\n", "\r": "\\r"}
_LETTERS = {written[1]: letter for letter, written in ESCAPES.items()}


def write_answers(path: Path, rows: Mapping[int, Sequence[Row]], figure: str, most: int = MOST) -> str | None:
    """Write the test examples of a run to a file, as many of the first as fit into `most` bytes.

    Nothing is written if there are no examples.

    Args:
        path: the file.
        rows: the examples with their answers, by seed.
        figure: the name of the number that comes with each answer, for example "probability".
        most: the maximum size in bytes.

    Returns:
        A line that says how many examples were left out, or None if there are all.

    Raises:
        FolderError: if the file cannot be written.
    """
    count = max(map(len, rows.values()), default=0)
    if not count:
        return None
    held, size = [], 0
    for line in lines({"test": (rows, figure)}):
        held.append(encode_utf8(line) + b"\n")
        size += len(held[-1])
        if size > most and len(held) > 1:
            held.pop()
            break
    write_whole(path, b"".join(held))
    kept = len(held) - 1
    return f"{path.name} contains only the first {kept:,} of {count:,} test examples" if kept < count else None


def lines(files: Mapping[str, tuple[Mapping[int, Sequence[Row]], str]]) -> Iterable[str]:
    """Yield the lines of the table, without line ends: the names of the columns, then one example per line.

    The columns are "input", "expected" and, for each seed, "answer.SEED" and the figure, for example
    "probability.SEED". If there are several files, "file" comes first. A column that no example has is left out.

    Args:
        files: for each file name, its rows by seed and the name of their figure.
    """
    parts = [_columns(file, *each) for file, each in files.items()]
    names = list(dict.fromkeys(name for part in parts for name in part))
    cells = {name: [cell for part in parts for cell in part[name]] for name in names}
    several = len(files) > 1
    kept = {name: each for name, each in cells.items() if any(cell is not None for cell in each)}
    if not several:
        del kept["file"]
    yield "\t".join(kept)
    for row in zip(*kept.values(), strict=True):
        yield "\t".join(map(escape, row))


def _columns(file: str, rows: Mapping[int, Sequence[Row]], figure: str) -> dict[str, list[str | None]]:
    """Return the cells of a file's examples, by column."""
    first = next(iter(rows.values()))
    columns: dict[str, list[str | None]] = {
        "file": [file for _ in first],
        "input": [row.input for row in first],
        "expected": [row.expected for row in first],
    }
    for seed, each in rows.items():
        columns[f"answer.{seed}"] = [row.answer for row in each]
        columns[f"{figure}.{seed}"] = [None if row.figure is None else f"{row.figure:.6g}" for row in each]
    return columns


def escape(cell: str | None) -> str:
    r"""Escape a cell for the table. None becomes an empty cell.

    >>> escape("a\tb\\\n"), escape(None)
    ('a\\tb\\\\\\n', '')
    """
    return "".join(ESCAPES.get(letter, letter) for letter in cell or "")


def unescape(cell: str) -> str:
    r"""Return the text that `escape` was given.

    >>> unescape("a\\tb\\\\\\n")
    'a\tb\\\n'
    """
    found, letters = [], iter(cell)
    for letter in letters:
        found.append(letter if letter != "\\" else _LETTERS.get(following := next(letters, ""), f"\\{following}"))
    return "".join(found)


def read(path: str | Path) -> list[dict[str, str]]:
    """Read a table and return its examples as dicts by column name."""
    head, *rows = Path(path).read_bytes().decode("utf-8").split("\n")[:-1]
    names = head.split("\t")
    return [dict(zip(names, map(unescape, row.split("\t")), strict=True)) for row in rows]
