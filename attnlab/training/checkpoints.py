"""Checkpoints by orbax, each with a manifest that is verified before anything of it is used.

orbax restores a flipped bit, another dtype or another shape without a word; the manifest holds every file's sha256,
and the tree that is asked for is compared leaf by leaf.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax
import numpy as np

MANIFEST = "manifest.json"


class CheckpointError(Exception):
    """A checkpoint that cannot be used, in one line that names it."""

    exit_code = 4


@dataclass(frozen=True)
class Checkpoints:
    """The checkpoints of a run: one folder a step, the last `keep` of them.

    `note` hears one line about each that is passed over.
    """

    folder: Path
    keep: int = 2
    note: Callable[[str], None] = lambda text: None

    def steps(self) -> list[int]:
        """The steps that were saved, ascending; what a kill left half-written is none of them."""
        names = [path.name for path in self.folder.iterdir()] if self.folder.is_dir() else []
        return sorted(int(name) for name in names if name.isdecimal())

    def save(self, step: int, state: Any, facts: dict[str, Any]) -> None:
        """Write the state and the facts beside it, complete or not at all; then keep it and the last few before.

        Later steps are dropped too: training went back behind them because they could not be used.

        Raises CheckpointError where it cannot be written.
        """
        import orbax.checkpoint as ocp  # seconds to import, and needed only here

        final, growing = self.folder / str(step), self.folder / f".{step}.growing"
        try:
            shutil.rmtree(growing, ignore_errors=True)
            growing.mkdir(parents=True)
            with ocp.PyTreeCheckpointer() as writer:
                writer.save((growing / "state").absolute(), flat(state))
            manifest = {"step": step, "facts": facts, "leaves": described(state), "files": hashes(growing)}
            with (growing / MANIFEST).open("w") as file:
                json.dump({**manifest, "digest": digest(manifest)}, file, indent=1)
                file.flush()
                os.fsync(file.fileno())
            if final.exists():
                shutil.rmtree(final)
            growing.rename(final)
            self._prune(step)
        except OSError as error:
            raise CheckpointError(f"checkpoint {final} could not be written: {error.strerror or error}") from error

    def _prune(self, step: int) -> None:
        saved = self.steps()
        kept = [at for at in saved if at <= step][-self.keep :]
        for at in set(saved) - set(kept):
            shutil.rmtree(self.folder / str(at))

    def restore(self, target: Any) -> tuple[int, Any, dict[str, Any]] | None:
        """The newest state that verifies, as a tree like `target`: (step, state, facts). None if none was saved.

        One that does not verify is named and passed over. Raises CheckpointError where none verifies.
        """
        steps, reasons = self.steps(), []
        for step in reversed(steps):
            try:
                return step, *self.read(step, target)
            except CheckpointError as error:
                reasons.append(str(error))
                self.note(f"passed over: {error}")
        if steps:
            raise CheckpointError(f"no checkpoint in {self.folder} can be used ({reasons[0]}); --fresh starts again")
        return None

    def read(self, step: int, target: Any) -> tuple[Any, dict[str, Any]]:
        """State and facts of one step. Raises CheckpointError where a file, the tree, a shape or a dtype differs."""
        folder = self.folder / str(step)
        try:
            manifest = json.loads((folder / MANIFEST).read_text())
            if manifest.pop("digest") != digest(manifest):
                raise ValueError("it was altered")
            found = hashes(folder)
            wanted, leaves, facts = manifest["files"], manifest["leaves"], manifest["facts"]
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise CheckpointError(f"checkpoint {folder / MANIFEST} cannot be read: {error}") from error
        for name in sorted(wanted.keys() | found.keys()):
            if wanted.get(name) != found.get(name):
                what = "is missing" if name not in found else "was not saved" if name not in wanted else "was altered"
                raise CheckpointError(f"checkpoint file {folder / name} {what}")
        if leaves != described(target):
            names = [n for n in leaves.keys() | described(target).keys() if leaves.get(n) != described(target).get(n)]
            raise CheckpointError(f"checkpoint {folder} holds another state: {sorted(names)[0]} differs")
        import orbax.checkpoint as ocp

        with ocp.PyTreeCheckpointer() as reader:
            values = reader.restore((folder / "state").absolute())
        return unflat(values, target), facts


def flat(tree: Any) -> dict[str, np.ndarray]:
    """The leaves by path, keys as their data."""
    return {jax.tree_util.keystr(path): _plain(leaf) for path, leaf in jax.tree_util.tree_leaves_with_path(tree)}


def unflat(values: dict[str, Any], target: Any) -> Any:
    """A tree like `target` with those values."""

    def leaf(path, like):
        value = values[jax.tree_util.keystr(path)]
        return jax.random.wrap_key_data(value) if _is_key(like) else jax.numpy.asarray(value)

    return jax.tree_util.tree_map_with_path(leaf, target)


def described(tree: Any) -> dict[str, list]:
    """Path of every leaf -> [shape, dtype]."""
    return {
        jax.tree_util.keystr(path): [list(leaf.shape), str(leaf.dtype)]
        for path, leaf in jax.tree_util.tree_leaves_with_path(tree)
    }


def digest(manifest: dict[str, Any]) -> str:
    """The sha256 of a manifest, by which it answers for itself."""
    return hashlib.sha256(json.dumps(manifest, sort_keys=True).encode()).hexdigest()


def hashes(folder: Path) -> dict[str, list]:
    """Path of every file below a folder, the manifest apart -> [sha256, bytes]."""
    files = {}
    for path in sorted(folder.rglob("*")):
        if path.is_file() and path != folder / MANIFEST:
            with path.open("rb") as file:
                files[path.relative_to(folder).as_posix()] = [
                    hashlib.file_digest(file, "sha256").hexdigest(),
                    path.stat().st_size,
                ]
    return files


def _is_key(leaf: Any) -> bool:
    return jax.numpy.issubdtype(leaf.dtype, jax.dtypes.prng_key)


def _plain(leaf: Any) -> np.ndarray:
    return np.asarray(jax.random.key_data(leaf) if _is_key(leaf) else leaf)
