"""The checkpoints of a run: written completely or not at all, verified before use, and pruned to a few."""

from __future__ import annotations

import math
import shutil
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import jax
from jaxtyping import PyTree

from attnlab.storage.fsync import fsync_folder
from attnlab.storage.json_file import JsonObject
from attnlab.training import manifest, state_files
from attnlab.training.manifest import CheckpointError, DamagedError

__all__ = ["CheckpointError", "Checkpoints", "DamagedError", "Keep"]

OVERHEAD = 1 << 18  # bytes of a checkpoint in addition to its arrays: the manifest and orbax's own files


@dataclass(frozen=True)
class Keep:
    """Which checkpoints are kept.

    The newest checkpoint is always kept. A score that is not finite is never among the best.
    """

    last: int = 2
    """The number of newest checkpoints to keep."""
    best: int = 1
    """The number of checkpoints with the best scores to keep."""
    every: int = 0
    """The interval in steps at which checkpoints are kept. 0 keeps none for this reason."""

    def of(self, scores: dict[int, float | None]) -> set[int]:
        """Returns the steps to keep.

        Args:
            scores: The score of each saved step, more being better, or None if the step was not evaluated.
        """
        steps = sorted(scores)
        known = sorted(
            (selection_score, step)
            for step, selection_score in scores.items()
            if selection_score is not None and math.isfinite(selection_score)
        )
        best = [step for _, step in known[-self.best :]] if self.best else []
        return {*steps[-max(self.last, 1) :], *best, *(step for step in steps if self.every and not step % self.every)}


@dataclass(frozen=True)
class Checkpoints:
    """A folder of checkpoints, with one subfolder for each saved step.

    While a checkpoint is being written, its folder is named `.STEP.growing`. While it is being removed, its folder is
    named `.STEP.going`. A crash may leave either; `sweep` removes them.
    """

    folder: Path
    """The folder of all checkpoints of the run."""
    keep: Keep = Keep()
    """Which checkpoints are kept after each save."""
    identity: dict[str, str] = field(default_factory=dict)
    """Digests that identify the run, by name, for example of its configuration and its data.

    A checkpoint with another identity is refused.
    """
    note: Callable[[str], None] = lambda text: None
    """Called with one line of text for each checkpoint that is skipped because it is damaged."""

    def steps(self) -> list[int]:
        """Returns the saved steps in ascending order, without partly written ones."""
        names = [path.name for path in self.folder.iterdir()] if self.folder.is_dir() else []
        return sorted(int(name) for name in names if name.isdecimal() and name == str(int(name)))

    def save(self, step: int, state: PyTree, facts: JsonObject, selection_score: float | None = None) -> None:
        """Writes a checkpoint, completely or not at all, then removes those that need not be kept.

        Checkpoints of later steps are removed too: they exist only if they could not be used and training continued
        from an earlier one. The data is flushed to the disk when this returns.

        Args:
            step: The step of the state.
            state: The state, a tree of arrays.
            facts: Further values to store, in JSON types.
            selection_score: The validation score of the leading learning rate at this step, more being better. None if
                the step was not evaluated.

        Raises:
            CheckpointError: If the checkpoint cannot be written, or if there is no room for it.
        """
        final, growing = self.folder / str(step), self.folder / f".{step}.growing"
        try:
            self.sweep()
            self.check_room(state)
            growing.mkdir(parents=True)
            state_files.write(growing, state)
            known = selection_score is not None and math.isfinite(selection_score)
            manifest.write(growing, {
                "step": step, "selection_score": selection_score if known else None,
                "identity": self.identity, "keys": state_files.random_keys(state), "facts": facts,
                "leaves": manifest.described(state),
            })  # fmt: skip
            self._drop(step)
            growing.rename(final)
            fsync_folder(self.folder)
            self._prune(step)
        except OSError as error:
            raise CheckpointError(f"checkpoint {final} could not be written: {error.strerror or error}") from error

    def check_room(self, state: PyTree, more: int = 1) -> None:
        """Raises CheckpointError if the disk has no room for `more` further checkpoints of that state."""
        needed = more * (size(state) + OVERHEAD)
        existing = next(path for path in (self.folder, *self.folder.absolute().parents) if path.exists())
        free = shutil.disk_usage(existing).free
        if free < needed:
            raise CheckpointError(
                f"{self.folder}: {more} checkpoint{'s' * (more > 1)} of this run need{'s' * (more == 1)} "
                f"{needed / 1e6:.1f} MB, but its disk has only {free / 1e6:.1f} MB free; free some space, "
                "or train in another --out and keep fewer (train.keep_last, train.keep_best, train.keep_every)"
            )

    def restore(self, target: PyTree) -> tuple[int, PyTree, JsonObject] | None:
        """Restores the newest checkpoint that passes verification.

        A damaged checkpoint is reported to `note` and skipped.

        Args:
            target: A tree with the expected structure, shapes and dtypes.

        Returns:
            (step, state, facts), or None if no checkpoint was saved.

        Raises:
            DamagedError: If there are checkpoints and all are damaged.
            CheckpointError: If a checkpoint may be intact but cannot be used here. To continue from an older one would
                eventually remove it.
        """
        steps, reasons = self.steps(), []
        for step in reversed(steps):
            try:
                return step, *self.read(step, target)
            except DamagedError as error:
                reasons.append(str(error))
                self.note(f"skipped: {error}")
            except CheckpointError as error:
                raise CheckpointError(f"{error}; the run is unchanged") from error
        if steps:
            raise DamagedError(
                f"no checkpoint in {self.folder} is intact ({reasons[0]}); the other files of the run are unchanged; "
                "use --out DIR to train in another folder"
            )
        return None

    def best(self) -> int:
        """Returns the saved step with the best validation score.

        A checkpoint whose score cannot be read is reported to `note` and skipped.

        Raises:
            CheckpointError: If no saved step has a score.
        """
        scores = {step: self._merit(step, self.note) for step in self.steps()}
        known = [(selection_score, step) for step, selection_score in scores.items() if selection_score is not None]
        if not known:
            raise CheckpointError(f"no checkpoint in {self.folder} has a validation score")
        return max(known)[1]

    def read(self, step: int, target: PyTree) -> tuple[PyTree, JsonObject]:
        """Returns the state and the facts of one step.

        Raises:
            CheckpointError: If there is no such step, or if a file, the run, the tree, a shape or a dtype differs from
                what is expected.
        """
        folder = self.folder / str(step)
        if not folder.exists():
            saved = ", ".join(map(str, self.steps())) or "none"
            raise CheckpointError(f"{self.folder} has no checkpoint of step {step}; saved steps: {saved}")
        found = manifest.verify(folder, step, self.identity, target)
        return state_files.read(folder, target), found["facts"]

    def _drop(self, step: int) -> None:
        """Removes a checkpoint. It is renamed first, so that a crash leaves it complete or gone."""
        path, going = self.folder / str(step), self.folder / f".{step}.going"
        if path.exists():
            path.rename(going)
            _remove(going)

    def sweep(self) -> None:
        """Removes what a crash left partly written or partly removed. Raises OSError."""
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
            return manifest.read(self.folder / str(step))["selection_score"]
        except CheckpointError as error:
            note(f"skipped: {error}")
            return None


def size(state: PyTree) -> int:
    """Returns the number of bytes of a tree of arrays, or of a tree of their shapes and dtypes."""
    return sum(math.prod(x.shape) * x.dtype.itemsize for x in jax.tree.leaves(state))


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink()
