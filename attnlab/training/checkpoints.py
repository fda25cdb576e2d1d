"""The checkpoints of a run: saved whole or not at all, verified before use, the last and the best of them kept."""

from __future__ import annotations

import errno
import io
import logging
import math
import os
import re
import shutil
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stderr
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import jax
import numpy as np

from attnlab.storage.fsync import fsync_folder
from attnlab.training import manifest
from attnlab.training.manifest import CheckpointError, DamagedError

__all__ = ["CheckpointError", "Checkpoints", "DamagedError", "Keep"]

OVERHEAD = 1 << 18  # bytes of a checkpoint beside its numbers: the manifest and orbax's own files


@dataclass(frozen=True)
class Keep:
    """Which checkpoints stay: the `last` few, the `best` few by their merit, and those of each `every` steps (0: none).

    The newest always does. A merit that is not finite is never among the best.
    """

    last: int = 2
    best: int = 1
    every: int = 0

    def of(self, merits: dict[int, float | None]) -> set[int]:
        """The steps to keep, of {step: merit; None where validation was not looked at}."""
        steps = sorted(merits)
        known = sorted((merit, step) for step, merit in merits.items() if merit is not None and math.isfinite(merit))
        best = [step for _, step in known[-self.best :]] if self.best else []
        return {*steps[-max(self.last, 1) :], *best, *(step for step in steps if self.every and not step % self.every)}


@dataclass(frozen=True)
class Checkpoints:
    """A folder for each step that was saved.

    `identity` tells this run from others by {name: digest}, such as those of its configuration and its data: what was
    saved by another is refused. `note` hears one line about each checkpoint that is passed over. While one is written
    its folder is `.STEP.growing`, while it is dropped `.STEP.going`; a crash may leave either, until `sweep`.
    """

    folder: Path
    keep: Keep = Keep()
    identity: dict[str, str] = field(default_factory=dict)
    note: Callable[[str], None] = lambda text: None

    def steps(self) -> list[int]:
        """The steps that were saved, ascending; what a crash left half-written is none of them."""
        names = [path.name for path in self.folder.iterdir()] if self.folder.is_dir() else []
        return sorted(int(name) for name in names if name.isdecimal() and name == str(int(name)))

    def save(self, step: int, state: Any, facts: dict[str, Any], merit: float | None = None) -> None:
        """Write the state and the facts beside it, complete or not at all; then drop those that need not be kept.

        `merit` is how well it does on validation, more being better: of several learning rates, the one that is ahead.
        Later steps are dropped too: training went back behind them because they could not be used. What is written is
        on the disk, not in a buffer, when this ends.

        Raises CheckpointError where it cannot be written, or where there is no room for it.
        """
        final, growing = self.folder / str(step), self.folder / f".{step}.growing"
        try:
            self.sweep()
            self.check_room(state)
            growing.mkdir(parents=True)
            _write(growing, state)
            manifest.write(growing, {
                "step": step, "merit": merit if merit is None or math.isfinite(merit) else None,
                "identity": self.identity, "keys": _keys(state), "facts": facts, "leaves": manifest.described(state),
            })  # fmt: skip
            self._drop(step)
            growing.rename(final)
            fsync_folder(self.folder)
            self._prune(step)
        except OSError as error:
            raise CheckpointError(f"checkpoint {final} could not be written: {error.strerror or error}") from error

    def check_room(self, state: Any, more: int = 1) -> None:
        """Raise CheckpointError where the disk has no room for so many more checkpoints of that state."""
        needed = more * (size(state) + OVERHEAD)
        there = next(path for path in (self.folder, *self.folder.absolute().parents) if path.exists())
        free = shutil.disk_usage(there).free
        if free < needed:
            raise CheckpointError(
                f"{self.folder}: {more} checkpoint{'s' * (more > 1)} of this run need{'s' * (more == 1)} "
                f"{needed / 1e6:.1f} MB, and its disk has {free / 1e6:.1f} MB free: make room, "
                "or train in another --out and keep fewer (train.keep_last, train.keep_best, train.keep_every)"
            )

    def restore(self, target: Any) -> tuple[int, Any, dict[str, Any]] | None:
        """The newest state that verifies, as a tree like `target`: (step, state, facts). None if none was saved.

        One that is damaged is named and passed over. Raises CheckpointError where all are, and for one that may be
        intact and cannot be used here: to continue from an older one would in time drop it.
        """
        steps, reasons = self.steps(), []
        for step in reversed(steps):
            try:
                return step, *self.read(step, target)
            except DamagedError as error:
                reasons.append(str(error))
                self.note(f"passed over: {error}")
            except CheckpointError as error:
                raise CheckpointError(f"{error}; the run is left as it is") from error
        if steps:
            raise DamagedError(
                f"no checkpoint in {self.folder} is intact ({reasons[0]}); --out DIR trains the run anew beside it, "
                "--fresh in its place"
            )
        return None

    def best(self) -> int:
        """The step that did best on validation, of those still there. Raises CheckpointError where none is known.

        One whose merit cannot be read is named and passed over.
        """
        merits = {step: self._merit(step, self.note) for step in self.steps()}
        known = [(merit, step) for step, merit in merits.items() if merit is not None]
        if not known:
            raise CheckpointError(f"{self.folder} holds no checkpoint of a step at which validation was looked at")
        return max(known)[1]

    def read(self, step: int, target: Any) -> tuple[Any, dict[str, Any]]:
        """State and facts of one step.

        Raises CheckpointError where there is none, and where a file, the run, the tree, a shape or a dtype differs.
        """
        folder = self.folder / str(step)
        if not folder.exists():
            there = ", ".join(map(str, self.steps())) or "none"
            raise CheckpointError(f"{self.folder} holds no checkpoint of step {step}; of these: {there}")
        found = manifest.verify(folder, step, self.identity, target)
        return _read(folder, target), found["facts"]

    def _drop(self, step: int) -> None:
        """Let one go, in one move: a crash leaves it whole or gone."""
        path, going = self.folder / str(step), self.folder / f".{step}.going"
        if path.exists():
            path.rename(going)
            _remove(going)

    def sweep(self) -> None:
        """Clear away what a crash left half-written or half-dropped. Raises OSError."""
        if self.folder.is_dir():
            for path in [*self.folder.glob(".*.growing"), *self.folder.glob(".*.going")]:
                _remove(path)

    def _prune(self, step: int) -> None:
        saved = self.steps()
        kept = self.keep.of({at: self._merit(at) for at in saved if at <= step})
        for at in saved:
            if at not in kept:
                self._drop(at)

    def _merit(self, step: int, note: Callable[[str], None] = lambda text: None) -> float | None:
        try:
            return manifest.read(self.folder / str(step))["merit"]
        except CheckpointError as error:
            note(f"passed over: {error}")
            return None


@contextmanager
def in_utf8(folder: Path) -> Iterator[Path]:
    """The folder's absolute path, in letters that name it in UTF-8 too, as tensorstore reads every path.

    In an ASCII or Latin-1 locale, and for a name that is no UTF-8, they would name another folder or none: there it is
    opened, and named by its descriptor. Raises OSError where the system has no such names.
    """
    path = folder.absolute()
    if os.fsencode(path) == str(path).encode("utf-8", "replace"):
        yield path
        return
    handle = os.open(path, os.O_RDONLY)
    try:
        place = Path(f"/proc/self/fd/{handle}")
        if not place.is_dir():
            raise OSError(errno.EINVAL, f"its name is not written in UTF-8, but in {sys.getfilesystemencoding()}")
        yield place
    finally:
        os.close(handle)


def size(state: Any) -> int:
    """The bytes of the numbers in a tree of arrays or of their shapes."""
    return sum(math.prod(x.shape) * x.dtype.itemsize for x in jax.tree.leaves(state))


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink()


def _write(folder: Path, state: Any) -> None:
    import orbax.checkpoint as ocp  # seconds to import, and needed only here and where one is read

    # What its threads meet is raised here; they print pages of it besides.
    _ignore_late_writes()
    log = logging.getLogger("absl")
    level = log.level
    log.setLevel(logging.CRITICAL)
    try:
        with redirect_stderr(io.StringIO()), in_utf8(folder) as place, ocp.PyTreeCheckpointer() as writer:
            writer.save(place / "state", flatten(state))
    except OSError:
        raise
    except Exception as error:  # tensorstore tells of a full disk by a ValueError of a page, in which the number stands
        said = " ".join(str(error).split())
        found = re.search(r"os_error_code='(\d+)'", said)
        raise OSError(int(found[1]), os.strerror(int(found[1]))) if found else OSError(None, said[:300]) from error
    finally:
        log.setLevel(level)


def _ignore_late_writes() -> None:
    """Print no traceback for each write that tensorstore's threads end after the first one failed.

    They report to an event loop that is closed by then, and what that raises Python hands to `sys.unraisablehook`.
    """
    before = sys.unraisablehook
    if getattr(before, "__name__", "") == "ignoring_late_writes":
        return

    def ignoring_late_writes(unraisable):
        error = unraisable.exc_value
        if not (isinstance(error, RuntimeError) and str(error) == "Event loop is closed"):
            before(unraisable)

    sys.unraisablehook = ignoring_late_writes


def _read(folder: Path, target: Any) -> Any:
    import orbax.checkpoint as ocp

    like = jax.tree_util.tree_leaves_with_path(target)
    kinds = {jax.tree_util.keystr(path): ocp.RestoreArgs(restore_type=np.ndarray) for path, _ in like}
    try:
        with in_utf8(folder) as place, ocp.PyTreeCheckpointer() as reader:
            return unflatten(reader.restore(place / "state", restore_args=kinds), target)
    except Exception as error:  # whatever orbax and tensorstore say of what they cannot read
        # Its files are those that were saved: what fails lies here, as memory or a device.
        said = " ".join(str(error).split())[:300] or type(error).__name__
        raise CheckpointError(f"checkpoint {folder} is intact and cannot be loaded here: {said}") from error


def flatten(tree: Any) -> dict[str, np.ndarray]:
    """The leaves by path, keys as their data."""
    return {jax.tree_util.keystr(path): _plain(leaf) for path, leaf in jax.tree_util.tree_leaves_with_path(tree)}


def unflatten(values: dict[str, Any], target: Any) -> Any:
    """A tree like `target` with those values."""

    def leaf(path, like):
        value = values[jax.tree_util.keystr(path)]
        return jax.random.wrap_key_data(value) if _is_key(like) else jax.numpy.asarray(value)

    return jax.tree_util.tree_map_with_path(leaf, target)


def _keys(state: Any) -> dict[str, list]:
    """The random keys in a state, as numbers."""
    leaves = jax.tree_util.tree_leaves_with_path(state)
    return {jax.tree_util.keystr(path): _plain(leaf).tolist() for path, leaf in leaves if _is_key(leaf)}


def _is_key(leaf: Any) -> bool:
    return jax.numpy.issubdtype(leaf.dtype, jax.dtypes.prng_key)


def _plain(leaf: Any) -> np.ndarray:
    return np.asarray(jax.random.key_data(leaf) if _is_key(leaf) else leaf)
