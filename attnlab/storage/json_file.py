"""Strict JSON files: errors that name what is broken, and writes that survive a crash."""

from __future__ import annotations

import json
import math
import os
import sys
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from attnlab.storage import checksum
from attnlab.storage.file_names import as_text
from attnlab.storage.fsync import write_atomically

Fields = dict[str, type | tuple[type, ...]]
JsonObject = dict[str, Any]  # a JSON object by field; whoever reads a field that `Fields` do not name checks it
_KINDS = {dict: "an object", list: "a list", str: "text", bool: "true or false", int: "a whole number"}
OF_A_RUN = ("experiment.json", "study.json")  # the folder of a run or of a study holds one of them


class FolderError(Exception):
    """A run folder cannot be read or written. The message is one line that names the file, and the line in it."""

    exit_code = 4


def dumps(value: object, indent: int | None = None) -> str:
    """Return `value` as JSON. Arrays become lists, and numbers that are not finite become null."""
    return json.dumps(_plain(value), allow_nan=False, ensure_ascii=False, indent=indent)


def loads(content: bytes, needed: Fields, where: str) -> JsonObject:
    """Parse a JSON object.

    Args:
        content: The bytes.
        needed: The required fields with their types.
        where: The start of an error message.

    Raises:
        FolderError: `content` is not a JSON object, or a required field is missing or has another type.
    """
    try:
        value = _DECODER.decode(content.decode(json.detect_encoding(content), "surrogatepass"))
    except (ValueError, RecursionError) as error:
        raise FolderError(f"{where}: not JSON: {' '.join(str(error).split())}") from error
    if not isinstance(value, dict):
        raise FolderError(f"{where}: expected a JSON object, got {type(value).__name__}")
    for name, kind in needed.items():
        if name not in value:
            raise FolderError(f"{where}: the field {name!r} is missing")
        # bool is a subclass of int in Python, but neither may replace the other here.
        if not isinstance(value[name], kind) or isinstance(value[name], bool) != (kind is bool):
            raise FolderError(f"{where}: the field {name!r} must be {_KINDS.get(kind, 'a number')}")
    return value


def dump_with_checksum(value: JsonObject, indent: int | None = None, owner: bytes = b"") -> bytes:
    """Return `value` as JSON with a checksum and a line end.

    Args:
        value: The object.
        indent: The indentation, or None for a single line.
        owner: The owner of the file. A file of another owner is refused when it is read.
    """
    return checksum.with_checksum(encode_json(value, indent), owner) + b"\n"


def load_with_checksum(content: bytes, needed: Fields, where: str, owner: bytes = b"") -> JsonObject:
    """Parse what `dump_with_checksum` returned and check its checksum. Raises FolderError, starting with `where`.

    Args:
        content: The bytes.
        needed: The required fields with their types.
        where: The start of an error message.
        owner: The owner that was given to `dump_with_checksum`.

    Returns:
        The object without its checksum.
    """
    value = loads(content, needed, where)
    if wrong := checksum.find_damage(content.removesuffix(b"\n"), owner):
        raise FolderError(f"{where}: {wrong}")
    del value[checksum.OBJECT]
    return value


def content(path: Path) -> bytes | None:
    """Return the bytes of a file, or None if it does not exist. Raises FolderError if it cannot be read."""
    with folder_errors(path), suppress(FileNotFoundError):
        if path.exists() and not path.is_file() and not path.is_dir():
            # Reading it may never end.
            raise FolderError(f"{path} is a pipe or a device, not a file")
        return path.read_bytes()
    return None


def write_whole(path: Path, content: str | bytes) -> None:
    """Write a file so that after a crash it has either the old or the new content. Raises FolderError."""
    with folder_errors(path):
        write_atomically(path, content if isinstance(content, bytes) else encode_utf8(content))


def sweep(folder: Path) -> None:
    """Delete the partial files of processes that no longer exist. Raises FolderError."""
    with folder_errors(folder):
        for path in folder.glob("*.part"):
            process = path.name.split(".")[-2]
            if process.isdecimal() and not is_running(int(process)):
                path.unlink(missing_ok=True)


@contextmanager
def folder_errors(path: Path):
    """Convert OSErrors to FolderErrors that name the path, and also the error for a name that cannot be encoded."""
    try:
        yield
    except OSError as error:
        raise FolderError(f"{path}: {error.strerror or error}") from error
    except UnicodeEncodeError as error:
        codec = sys.getfilesystemencoding()
        raise FolderError(
            f"{path}: file names are encoded in {codec} here, which cannot encode this one; set LC_ALL=C.UTF-8"
        ) from error


def check_target(option: str, path: Path) -> None:
    """Check the file of an option such as `--json` or `--html`.

    Raises:
        ValueError: The file's suffix is not the name of the option.
        ValueError, FolderError: As in `check_place`.
    """
    ending = "." + option.removeprefix("--")
    if path.suffix != ending:
        raise ValueError(f"{option} {path} must end in {ending}")
    check_place(option, path)


def check_place(option: str, path: Path) -> None:
    """Check that the file of an option can be written, before there is anything to write.

    Raises:
        ValueError: The path is a folder or a file in the folder of a run, or its parent folder does not exist.
        FolderError: The operating system refuses to write it.
    """
    if path.is_dir():
        raise ValueError(f"{option} {path} is a folder, expected a file")
    if not path.parent.is_dir():
        raise ValueError(f"{option} {path}: the folder {path.parent} does not exist")
    with folder_errors(path):
        exists = path.exists()
        if exists and any((folder / name).is_file() for folder in path.resolve().parents for name in OF_A_RUN):
            raise ValueError(f"{option} {path} would replace a file in the folder of a run; name another file")
        path.open("ab").close()
        if not exists:
            path.unlink()


def encode_utf8(text: str) -> bytes:
    """Encode text as UTF-8, file names as `as_text` returns them. Any other surrogate becomes a question mark."""
    return as_text(text).encode("utf-8", errors="replace")


def encode_json(value: object, indent: int | None = None) -> bytes:
    """Return `value` as JSON in UTF-8, file names as `as_text` returns them.

    Any other surrogate, which JSON allows and UTF-8 does not, is written as an escape and read back unchanged.
    """
    return as_text(dumps(value, indent)).encode("utf-8", errors="backslashreplace")


def is_running(process: int) -> bool:
    """Return whether a process exists, as far as the system reports."""
    if os.name == "nt":  # on Windows, os.kill(process, 0) would end the process
        return True
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except OSError:
        pass
    return True


@runtime_checkable
class _Array(Protocol):
    """An array or a scalar of numpy or jax."""

    def tolist(self) -> object: ...


def _plain(value: object) -> object:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {str(name): _plain(part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(part) for part in value]
    return _plain(value.tolist()) if isinstance(value, _Array) else value


def _once(fields: list[tuple[str, object]]) -> dict[str, object]:
    """Return the fields of an object. A repeated field is an error, because Python would keep only the last one."""
    names = [name for name, _ in fields]
    if len(set(names)) < len(names):
        raise ValueError(f"the field {next(name for name in names if names.count(name) > 1)!r} is given twice")
    return dict(fields)


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is not valid in JSON")


_DECODER = json.JSONDecoder(parse_constant=_no_constant, object_pairs_hook=_once)
