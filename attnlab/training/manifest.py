"""The manifest of a checkpoint: it describes the files of the folder and is verified before any of them is used.

orbax 0.12.8 by itself silently restores another dtype, and silently restores arrays from a file with a flipped bit. Of
100 flips tried, 99 gave other numbers and none gave an error. The manifest therefore holds the sha256 and the size of
every file, and the shape and dtype of every leaf.
"""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path

import jax
from jaxtyping import PyTree

from attnlab.storage.checksum import find_damage, with_checksum
from attnlab.storage.fsync import fsync, fsync_folder
from attnlab.storage.json_file import JsonObject

MANIFEST = "manifest.json"
FIELDS = {"step", "selection_score", "identity", "keys", "facts", "leaves", "files"}


class CheckpointError(Exception):
    """A checkpoint cannot be used or written. The message is one line that names it."""

    exit_code = 4


class DamagedError(CheckpointError):
    """The files of a checkpoint are not those that were saved. Other checkpoints may be intact."""


def write(folder: Path, manifest: JsonObject) -> None:
    """Writes the manifest of a folder.

    When this returns, every file in the folder is described and flushed to the disk.
    """
    content = json.dumps({**manifest, "files": hashes(folder, settling=True)}, indent=1).encode()
    with (folder / MANIFEST).open("wb") as file:
        file.write(with_checksum(content))
        fsync(file)
    for path in (*(path for path in folder.rglob("*") if path.is_dir()), folder):
        fsync_folder(path)


def read(folder: Path) -> JsonObject:
    """Returns the manifest of a folder, without checking the files that it describes.

    Raises:
        DamagedError: If the manifest is missing or was altered.
        CheckpointError: If the system does not permit reading it.
    """
    path = folder / MANIFEST
    try:
        if path.exists() and not (path.is_file() or path.is_dir()):
            raise ValueError("it is a pipe or a device")
        content = path.read_bytes()
        if wrong := find_damage(content):
            raise ValueError(wrong)
        found = json.loads(content)
        if not isinstance(found, dict):
            raise ValueError("it is not a JSON object")
        if missing := FIELDS - found.keys():
            raise ValueError(f"it has no field {min(missing)!r}")
        if odd := [name for name in ("identity", "facts", "leaves", "files") if not isinstance(found[name], dict)]:
            raise ValueError(f"its {odd[0]!r} is not a JSON object")
        if not isinstance(found["selection_score"], int | float | None):
            raise ValueError("its 'selection_score' is not a number")
    except (OSError, ValueError, RecursionError) as error:
        damaged = not isinstance(error, OSError) or isinstance(
            error, FileNotFoundError | IsADirectoryError | NotADirectoryError
        )
        reason = (error.strerror if isinstance(error, OSError) else error) or type(error).__name__
        raise (DamagedError if damaged else CheckpointError)(f"checkpoint {path} cannot be read: {reason}") from error
    return found


def verify(folder: Path, step: int, identity: dict[str, str], target: PyTree) -> JsonObject:
    """Verifies a checkpoint and returns its manifest.

    Args:
        folder: The folder of the checkpoint.
        step: The expected step.
        identity: The expected identity of the run. Names that the manifest lacks are not compared.
        target: A tree with the expected structure, shapes and dtypes.

    Raises:
        DamagedError: If the step or a file differs from what was saved. The message names the first such file.
        CheckpointError: If the checkpoint may be intact but belongs to another run, or holds another state.
    """
    manifest = read(folder)
    if manifest["step"] != step:
        raise DamagedError(f"checkpoint {folder} contains step {manifest['step']}, expected step {step}")
    for name, value in identity.items():
        if manifest["identity"].get(name, value) != value:
            raise CheckpointError(f"checkpoint {folder} belongs to another run: its {name} differs")
    files, found = manifest["files"], hashes(folder)
    for name in sorted(files.keys() | found.keys()):
        if files.get(name) != found.get(name):
            what = "is missing" if name not in found else "is unexpected" if name not in files else "was altered"
            raise DamagedError(f"checkpoint file {folder / name} {what}")
    leaves, like = manifest["leaves"], described(target)
    if differing := sorted(name for name in leaves.keys() | like.keys() if leaves.get(name) != like.get(name)):
        name = differing[0]
        held, expected = (_kind(tree.get(name)) for tree in (leaves, like))
        bits = "; JAX_ENABLE_X64 has changed" if {held[:7], expected[:7]} == {"float32", "float64"} else ""
        raise CheckpointError(f"checkpoint {folder} has another state: {name} is {held}, expected {expected}{bits}")
    return manifest


def described(tree: PyTree) -> dict[str, list]:
    """Returns [shape, dtype] of every leaf by path."""
    return {
        jax.tree_util.keystr(path): [list(leaf.shape), str(leaf.dtype)]
        for path, leaf in jax.tree_util.tree_leaves_with_path(tree)
    }


def _kind(leaf: object) -> str:
    """Describes a leaf in words, for example "float32 [8, 8]"."""
    return f"{leaf[1]} {leaf[0]}" if isinstance(leaf, list) and len(leaf) == 2 else "missing"


def hashes(folder: Path, settling: bool = False) -> dict[str, list]:
    """Returns [sha256, size in bytes] of every file below a folder by path, except for the manifest.

    Args:
        folder: The folder.
        settling: Whether to flush each file to the disk.

    Raises:
        DamagedError: If an entry is not a regular file.
        CheckpointError: If the system does not permit reading a file.
    """
    files = {}
    for path in sorted(folder.rglob("*")):
        if path == folder / MANIFEST or (path.is_dir() and not path.is_symlink()):
            continue
        if path.is_symlink() or not path.is_file():
            raise DamagedError(f"checkpoint file {path} is not a regular file")
        try:
            with path.open("rb") as file:
                files[path.relative_to(folder).as_posix()] = [
                    hashlib.file_digest(file, "sha256").hexdigest(),
                    os.fstat(file.fileno()).st_size,
                ]
                if settling:
                    os.fsync(file.fileno())
        except OSError as error:
            raise CheckpointError(f"checkpoint file {path} cannot be read: {error.strerror or error}") from error
    return files
