"""Strict JSON on disk: reading that names what is broken, and writing that a crash leaves whole."""

from __future__ import annotations

import json
import math
import os
import sys
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from attnlab.storage import checksum
from attnlab.storage.fsync import fsync, fsync_folder

Fields = dict[str, type | tuple[type, ...]]
_KINDS = {dict: "an object", list: "a list", str: "text", bool: "true or false", int: "a whole number"}


class FolderError(Exception):
    """A run folder that cannot be read or written; one line naming the file, and the line in it."""

    exit_code = 4


def dumps(value: Any, indent: int | None = None) -> str:
    """`value` as JSON; arrays become lists, and numbers that are not finite null."""
    return json.dumps(_plain(value), allow_nan=False, ensure_ascii=False, indent=indent)


def loads(content: bytes, needed: Fields, where: str) -> dict[str, Any]:
    """The JSON object in `content`, with the fields `needed`; else FolderError, beginning with `where`."""
    try:
        value = json.loads(content, parse_constant=_no_constant, object_pairs_hook=_once)
    except (ValueError, RecursionError) as error:
        raise FolderError(f"{where}: not JSON: {' '.join(str(error).split())}") from error
    if not isinstance(value, dict):
        raise FolderError(f"{where}: a JSON object was expected, not {type(value).__name__}")
    for name, kind in needed.items():
        if name not in value:
            raise FolderError(f"{where}: the field {name!r} is missing")
        # True is an int to Python, and 1 is no answer to a yes-or-no question.
        if not isinstance(value[name], kind) or isinstance(value[name], bool) != (kind is bool):
            raise FolderError(f"{where}: the field {name!r} must be {_KINDS.get(kind, 'a number')}")
    return value


def sealed(value: dict[str, Any], indent: int | None = None, owner: bytes = b"") -> bytes:
    """`value` as JSON that answers for itself, with a line end."""
    return checksum.with_checksum(encoded(dumps(value, indent)), owner) + b"\n"


def unsealed(content: bytes, needed: Fields, where: str, owner: bytes = b"") -> dict[str, Any]:
    """What `sealed` was given. FolderError, beginning with `where`, for what is not as it was written."""
    value = loads(content, needed, where)
    if wrong := checksum.is_broken(content.removesuffix(b"\n"), owner):
        raise FolderError(f"{where}: {wrong}")
    del value[checksum.OBJECT]
    return value


def content(path: Path) -> bytes | None:
    """The bytes of a file; None where there is none."""
    with folder_errors(path), suppress(FileNotFoundError):
        if path.exists() and not path.is_file() and not path.is_dir():
            # It may never end.
            raise FolderError(f"{path} is a pipe or a device, and no file")
        return path.read_bytes()
    return None


def write_whole(path: Path, content: str | bytes) -> None:
    """Write a file so that after a crash it is the old or the new one, never a part. Raises FolderError."""
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    with folder_errors(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            with part.open("wb") as file:
                file.write(content if isinstance(content, bytes) else encoded(content))
                fsync(file)
            os.replace(part, path)
        finally:
            part.unlink(missing_ok=True)
        fsync_folder(path.parent)


def sweep(folder: Path) -> None:
    """Clear away what processes that are no more were writing in a folder when they ended. Raises FolderError."""
    with folder_errors(folder):
        for path in folder.glob("*.part"):
            process = path.name.split(".")[-2]
            if process.isdecimal() and not lives(int(process)):
                path.unlink(missing_ok=True)


@contextmanager
def folder_errors(path: Path):
    """Turns what the operating system refuses into a FolderError that names the path, and what cannot name a file."""
    try:
        yield
    except OSError as error:
        raise FolderError(f"{path}: {error.strerror or error}") from error
    except UnicodeEncodeError as error:
        codec = sys.getfilesystemencoding()
        raise FolderError(f"{path}: names of files are written in {codec} here; set LC_ALL=C.UTF-8") from error


def check_target(option: str, path: Path) -> None:
    """Raise as `check_place`, and ValueError where a file does not end as its option is called: `--json`, `--html`."""
    ending = "." + option.removeprefix("--")
    if path.suffix != ending:
        raise ValueError(f"{option} {path} must end in {ending}")
    check_place(option, path)


def check_place(option: str, path: Path) -> None:
    """Raise where no file could be written for an option, before there is anything to write.

    ValueError for a folder and for one in a folder that is not there, FolderError for what the system refuses.
    """
    if path.is_dir():
        raise ValueError(f"{option} {path} is a folder; name a file")
    if not path.parent.is_dir():
        raise ValueError(f"{option} {path}: there is no folder {path.parent}")
    with folder_errors(path):
        there = path.exists()
        path.open("ab").close()
        if not there:
            path.unlink()


def encoded(text: str) -> bytes:
    """UTF-8; a lone surrogate, which JSON may hold and UTF-8 may not, becomes a question mark."""
    return text.encode("utf-8", errors="replace")


def lives(process: int) -> bool:
    """Whether there is such a process, as far as the system lets us ask."""
    if os.name == "nt":  # there, to ask would be to end it
        return True
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except OSError:
        pass
    return True


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(name): _plain(part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(part) for part in value]
    if hasattr(value, "tolist"):  # numpy's and jax's arrays and scalars
        return _plain(value.tolist())
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _once(fields: list[tuple[str, Any]]) -> dict[str, Any]:
    """The fields of an object, each of which must stand there once: Python would take the last."""
    names = [name for name, _ in fields]
    if len(set(names)) < len(names):
        raise ValueError(f"the field {next(name for name in names if names.count(name) > 1)!r} stands twice")
    return dict(fields)


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is no JSON")
