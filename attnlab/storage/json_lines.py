"""A growing file of JSON lines. Each checksum continues that of the row before. A line that a crash cut is repaired."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from pathlib import Path
from typing import BinaryIO

from attnlab.storage import json_file
from attnlab.storage.checksum import ROW, find_row_damage, row_with_checksum
from attnlab.storage.fsync import fsync
from attnlab.storage.json_file import Fields, FolderError, JsonObject, encode_json, write_whole

FIELDS: Fields = {"step": int, "seed": int, "learning_rate": (int, float)}


def read(path: Path, owner: bytes) -> list[JsonObject]:
    """Return the rows of a file in order, or nothing if it does not exist. A last line that was cut is left out.

    Raises:
        FolderError: Another line is broken, out of order or of another owner. The message names the file and the line.
    """
    return [_row(line, f"{path}, line {n}") for n, line in enumerate(_lines(path, owner), 1)]


def append(path: Path, rows: Iterable[JsonObject], owner: bytes) -> None:
    """Append a line for each row. A last line that was cut is removed first. Raises FolderError.

    Args:
        path: The file. It is created if it does not exist.
        rows: The rows.
        owner: The owner of the file, from which the checksum of the first row continues.
    """
    with json_file.folder_errors(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("a+b") as file:
            last, added = _mend(file) or owner, b""
            for row in rows:
                last = row_with_checksum(encode_json(row), last)
                added += last + b"\n"
            file.write(added)
            fsync(file)


def truncate(path: Path, step: int, owner: bytes) -> None:
    """Remove the rows after `step`. Raises FolderError if the rows of that step are missing.

    Args:
        path: The file.
        step: The last step that is kept.
        owner: The owner of the file.
    """
    lines = _lines(path, owner)
    steps = [_row(line, str(path))["step"] for line in lines]
    kept = lines[: sum(at <= step for at in steps)]
    # Each step has a row for each lane. With fewer rows than at the first step, some were lost.
    if step and (step not in steps or steps.count(step) < steps.count(steps[0])):
        missing = f"rows up to step {step}, the step of a checkpoint, are missing"
        raise FolderError(f"{path}: {missing}; remove this file to continue the run from its checkpoint")
    if path.exists():
        write_whole(path, b"".join(line + b"\n" for line in kept))


def _lines(path: Path, owner: bytes) -> list[bytes]:
    *lines, last = (json_file.content(path) or b"").split(b"\n")
    # A last line without a line end is either cut or lacks only the line end.
    if last and not _cut(last):
        lines.append(last)
    for n, (line, before) in enumerate(zip(lines, [owner, *lines], strict=False), 1):
        if wrong := find_row_damage(line, before):
            json_file.loads(line, FIELDS, f"{path}, line {n}")
            raise FolderError(f"{path}, line {n}: {wrong}")
    return lines


def _row(line: bytes, where: str) -> JsonObject:
    row = json_file.loads(line, FIELDS, where)
    del row[ROW]
    return row


def _cut(line: bytes) -> bool:
    """Return whether a line is only the beginning of a row."""
    try:
        json.JSONDecoder().raw_decode(line.decode(errors="replace"))
    except (ValueError, RecursionError):
        return True
    return False


def _mend(file: BinaryIO) -> bytes:
    """Make the file end with a complete line, so that the next row does not join a cut one. Returns that line."""
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
