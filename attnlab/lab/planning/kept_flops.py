"""The FLOPs of training batches, kept beside the compiled programs, because tracing a step takes half a second."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable
from contextlib import suppress
from importlib.metadata import version
from pathlib import Path

import jax

import attnlab
from attnlab.lab.study import serialize
from attnlab.lab.study.study import Experiment
from attnlab.lab.study.user_code import user_defined
from attnlab.storage.number_cache import NumberCache
from attnlab.system import compilation_cache, settings
from attnlab.system.environment import PACKAGES
from attnlab.tasks.base.task import TaskData

BatchShapes = Iterable[tuple[str, jax.ShapeDtypeStruct]]
SETTINGS = (*settings.NUMBERS, "jax_disable_jit")
OLD = 4  # files of other versions of attnlab that are kept


def batch_flops(experiment: Experiment, problem: TaskData, shapes: BatchShapes, count: Callable[[], int]) -> int:
    """Return the FLOPs of the gradients of one batch. They are counted if they are not kept from before.

    They are kept for exactly this code of attnlab, these versions of the libraries, task, model, data and batch shapes.
    Nothing is kept for your own classes and functions, because their code cannot always be compared. Nothing is kept
    without a cache of compiled programs.

    Args:
        experiment: The experiment.
        problem: The data of its task.
        shapes: The arrays of the batch, by name.
        count: Counts the FLOPs.
    """
    folder = compilation_cache.folder()
    if folder is None or CODE is None or (key := _key(experiment, problem, shapes)) is None:
        return count()
    kept = NumberCache(folder / f"flops-{CODE}.json")
    if (found := kept.get(key)) is None:
        kept.put(key, found := count())
        _remove_old(folder)
    return found


def _key(experiment: Experiment, problem: TaskData, shapes: BatchShapes) -> str | None:
    """Return a digest of all that the FLOPs depend on except attnlab's code, or None if they cannot be kept."""
    try:
        written = [serialize.write(config) for config in (experiment.task, experiment.model)]
    except ValueError:
        return None
    if user_defined(written):
        return None
    parts = {
        "configs": [serialize.identity(each) for each in written],
        "data": problem.fingerprint,
        "batch": sorted((name, x.shape, str(x.dtype)) for name, x in shapes),
        "settings": {name: str(settings.value(jax.config, name, None)) for name in SETTINGS},
        "backend": jax.default_backend(),
    }
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


def _code_digest() -> str | None:
    """Return a digest of attnlab's code and of the versions of the libraries it uses, or None without source files."""
    digest = hashlib.sha256(repr([version(name) for name in PACKAGES]).encode())
    package = Path(attnlab.__file__).parent
    paths = sorted(package.rglob("*.py"))
    for path in paths:
        digest.update(f"{path.relative_to(package)}\0".encode() + path.read_bytes())
    return digest.hexdigest()[:16] if paths else None


def _remove_old(folder: Path) -> None:
    """Remove the files of all but a few versions of the code."""
    with suppress(OSError):
        files = sorted(folder.glob("flops-*.json"), key=lambda path: path.stat().st_mtime)
        for path in files[: -1 - OLD]:
            path.unlink(missing_ok=True)


# Computed when this module is imported, so that it is the digest of the code that this process runs.
CODE = _code_digest()
