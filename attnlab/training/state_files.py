"""The arrays of a checkpoint on disk, in the format of orbax."""

from __future__ import annotations

import errno
import io
import logging
import os
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stderr
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import jax
import numpy as np
from jaxtyping import PyTree

from attnlab.training.manifest import CheckpointError

if TYPE_CHECKING:
    from sys import UnraisableHookArgs


@contextmanager
def in_utf8(folder: Path) -> Iterator[Path]:
    """Yields an absolute path of the folder that is valid in UTF-8, as tensorstore encodes every path.

    In an ASCII or Latin-1 locale, or for a name that is not valid UTF-8, the plain path would name another folder or
    none. The folder is then opened and named by its file descriptor.

    Raises:
        OSError: If the system has no names for file descriptors.
    """
    path = folder.absolute()
    if os.fsencode(path) == str(path).encode("utf-8", "replace"):
        yield path
        return
    handle = os.open(path, os.O_RDONLY)
    try:
        place = Path(f"/proc/self/fd/{handle}")
        if not place.is_dir():
            raise OSError(errno.EINVAL, f"its path must be encoded in UTF-8, but is in {sys.getfilesystemencoding()}")
        yield place
    finally:
        os.close(handle)


def write(folder: Path, state: PyTree) -> None:
    """Writes the arrays of a state to a folder. Raises OSError."""
    import orbax.checkpoint as ocp  # the import takes seconds, and only reading and writing need it

    # Errors of orbax's threads are raised here. The threads also print long tracebacks, which are suppressed.
    _ignore_late_writes()
    log = logging.getLogger("absl")
    level = log.level
    log.setLevel(logging.CRITICAL)
    try:
        with redirect_stderr(io.StringIO()), in_utf8(folder) as place, ocp.PyTreeCheckpointer() as writer:
            writer.save(place / "state", flatten(state))
    except OSError:
        raise
    except Exception as error:  # tensorstore reports a full disk by a long ValueError that contains the error number
        message = " ".join(str(error).split())
        found = re.search(r"os_error_code='(\d+)'", message)
        raise OSError(int(found[1]), os.strerror(int(found[1]))) if found else OSError(None, message[:300]) from error
    finally:
        log.setLevel(level)


def _ignore_late_writes() -> None:
    """Suppress the tracebacks of tensorstore's threads for writes that end after the first failed write.

    These threads report to an event loop that is closed by then. Python passes the resulting error to
    `sys.unraisablehook`.
    """
    if not isinstance(sys.unraisablehook, _WithoutLateWrites):
        sys.unraisablehook = _WithoutLateWrites(sys.unraisablehook)


@dataclass(frozen=True)
class _WithoutLateWrites:
    """The hook `sys.unraisablehook` of before, without the errors of late writes."""

    before: Callable[[UnraisableHookArgs], object]

    def __call__(self, unraisable: UnraisableHookArgs) -> None:
        error = unraisable.exc_value
        if not (isinstance(error, RuntimeError) and str(error) == "Event loop is closed"):
            self.before(unraisable)


def read(folder: Path, target: PyTree) -> PyTree:
    """Returns a state like `target` with the arrays of a folder. Raises CheckpointError if they cannot be loaded."""
    import orbax.checkpoint as ocp

    like = jax.tree_util.tree_leaves_with_path(target)
    kinds = {jax.tree_util.keystr(path): ocp.RestoreArgs(restore_type=np.ndarray) for path, _ in like}
    try:
        with in_utf8(folder) as place, ocp.PyTreeCheckpointer() as reader:
            return unflatten(reader.restore(place / "state", restore_args=kinds), target)
    except Exception as error:  # orbax and tensorstore raise many types
        # The files have been verified, so the cause is on this side, for example memory or a device.
        reason = " ".join(str(error).split())[:300] or type(error).__name__
        raise CheckpointError(f"checkpoint {folder} is intact but cannot be loaded here: {reason}") from error


def flatten(tree: PyTree) -> dict[str, np.ndarray]:
    """Returns the leaves as numpy arrays by path. Random keys are converted to their data."""
    return {jax.tree_util.keystr(path): _plain(leaf) for path, leaf in jax.tree_util.tree_leaves_with_path(tree)}


def unflatten(values: dict[str, np.ndarray], target: PyTree) -> PyTree:
    """Returns a tree like `target` with the values of `flatten`."""

    def leaf(path, like):
        value = jax.numpy.asarray(values[jax.tree_util.keystr(path)])
        return jax.random.wrap_key_data(value) if _is_key(like) else value

    return jax.tree_util.tree_map_with_path(leaf, target)


def _is_key(leaf: jax.Array | jax.ShapeDtypeStruct) -> bool:
    return jax.numpy.issubdtype(leaf.dtype, jax.dtypes.prng_key)


def _plain(leaf: jax.Array) -> np.ndarray:
    return np.asarray(jax.random.key_data(leaf) if _is_key(leaf) else leaf)


def random_keys(state: PyTree) -> dict[str, list]:
    """Returns the random keys in a state by path, as lists of numbers."""
    leaves = jax.tree_util.tree_leaves_with_path(state)
    return {jax.tree_util.keystr(path): _plain(leaf).tolist() for path, leaf in leaves if _is_key(leaf)}
