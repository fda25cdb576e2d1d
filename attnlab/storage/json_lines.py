"""Rows that grow: a file of JSON lines, each sealed after the one before, mended where a crash cut the last."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from attnlab.storage import json_file
from attnlab.storage.checksum import ROW, is_row_broken, row_with_checksum
from attnlab.storage.fsync import fsync
from attnlab.storage.json_file import Fields, FolderError, dumps, encoded, write_whole

FIELDS: Fields = {"step": int, "seed": int, "learning_rate": (int, float)}


def read(path: Path, owner: bytes) -> list[dict[str, Any]]:
    """The rows of a file, in order; none where there is no file. A last line that was cut in the middle is left out.

    FolderError, naming file and line, where any other line is broken, out of its order or another owner's.
    """
    return [_row(line, f"{path}, line {n}") for n, line in enumerate(_lines(path, owner), 1)]


def append(path: Path, rows: Iterable[dict[str, Any]], owner: bytes) -> None:
    """Add a line for each row; a last line that was cut in the middle is cleared away first. Raises FolderError."""
    with json_file.folder_errors(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("a+b") as file:
            last, added = _mend(file) or owner, b""
            for row in rows:
                last = row_with_checksum(encoded(dumps(row)), last)
                added += last + b"\n"
            file.write(added)
            fsync(file)


def truncate(path: Path, step: int, owner: bytes) -> None:
    """Drop the rows after `step`. Raises FolderError where the rows of that step are not there."""
    lines = _lines(path, owner)
    steps = [_row(line, str(path))["step"] for line in lines]
    kept = lines[: sum(at <= step for at in steps)]
    # A row for each lane: where there are fewer, some were lost.
    if step and (step not in steps or steps.count(step) < steps.count(steps[0])):
        lost = f"the rows up to step {step}, where a checkpoint was saved, are lost"
        raise FolderError(f"{path}: {lost}; without this file the run continues from its checkpoint")
    if path.exists():
        write_whole(path, b"".join(line + b"\n" for line in kept))


def _lines(path: Path, owner: bytes) -> list[bytes]:
    *lines, last = (json_file.content(path) or b"").split(b"\n")
    # What ends without a line end was cut, or lacks no more than that end.
    if last and not _cut(last):
        lines.append(last)
    for n, (line, before) in enumerate(zip(lines, [owner, *lines], strict=False), 1):
        if wrong := is_row_broken(line, before):
            json_file.loads(line, FIELDS, f"{path}, line {n}")
            raise FolderError(f"{path}, line {n}: {wrong}")
    return lines


def _row(line: bytes, where: str) -> dict[str, Any]:
    row = json_file.loads(line, FIELDS, where)
    del row[ROW]
    return row


def _cut(line: bytes) -> bool:
    """Whether a line is no more than the beginning of a row."""
    try:
        json.JSONDecoder().raw_decode(line.decode(errors="replace"))
    except (ValueError, RecursionError):
        return True
    return False


def _mend(file: Any) -> bytes:
    """Make the file end with a whole line, so that the next does not join a cut one; that line."""
    size = file.seek(0, os.SEEK_END)
    block = 1 << 16
    while True:
        begin = file.seek(max(size - block, 0))
        tail = file.read()
        if begin == 0 or tail.count(b"\n") > 1:
            break
        block *= 2
    *lines, last = tail.split(b"\n")
    if last and not _cut(last):
        file.write(b"\n")
        return last
    if last:
        file.truncate(size - len(last))
    return lines[-1] if lines else b""
