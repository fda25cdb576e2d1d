"""Whether a run folder belongs to what is asked of it: its configuration, its data and its code."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import Any

from attnlab.data.io.files import DataError
from attnlab.lab.runs.run_folder import FolderError, RunFolder
from attnlab.lab.study import serialize
from attnlab.lab.study.study import Experiment
from attnlab.lab.study.user_code import missing
from attnlab.storage.json_file import dumps
from attnlab.tasks.base.task import TaskData
from attnlab.training.checkpoints import Checkpoints


def experiment_of(folder: RunFolder, written: dict[str, Any]) -> Experiment:
    """The experiment that a run's `experiment.json` holds. Raises FolderError naming that file where it is none."""
    try:
        return serialize.read(written["experiment"])
    except (ValueError, NotImplementedError) as error:
        found = missing(written)
        trained_with = f"; it was trained with {' and '.join(found)}" if found else ""
        raise FolderError(f"{folder.file('experiment')}: {error}{trained_with}") from error


def checkpoints_of(folder: RunFolder, data: str, **how: Any) -> Checkpoints:
    """The checkpoints of a folder's run on the data of a fingerprint, and of no other.

    Their identity is that of the configuration as the folder holds it: an older one lacks the fields added since.
    """
    written = (read_file(folder, "experiment") or {}).get("experiment")
    identity = {"configuration": serialize.identity(written), "data": data}
    return Checkpoints(folder.path / "checkpoints", identity=identity, **how)


def read_file(folder: RunFolder, name: str) -> dict[str, Any] | None:
    """What a file of the folder holds; None where there is none. FolderError, saying what to do, where it is broken."""
    try:
        return folder.read(name)
    except FolderError as error:
        # What the system does not let us read would not be cleared away either.
        hint = "" if isinstance(error.__cause__, OSError) else f"; {MENDED[name]}"
        raise FolderError(f"{error}{hint}") from error


def environment_of(folder: RunFolder) -> dict[str, Any]:
    """What `environment.json` holds; nothing where it is lost or damaged: it is compared where it can be."""
    with suppress(FolderError):
        return folder.read("environment") or {}
    return {}


def same_data(folder: RunFolder, written: dict[str, Any], problem: TaskData) -> None:
    """Raise DataError where the run of an `experiment.json` was made from other data than the problem's."""
    before, now = fingerprint(folder, written), problem.fingerprint
    if before != now:
        raise DataError(
            f"{folder.path} was made from other data (fingerprint {before[:12]}, now {now[:12]}): give it those again, "
            "or train on these with --out DIR; the run is intact"
        )


def fingerprint(folder: RunFolder, written: dict[str, Any]) -> str:
    """That of the data which the run of an `experiment.json` was made from; FolderError where it holds none."""
    if not isinstance(found := written.get("fingerprint"), str):
        what = f"{folder.file('experiment')}: fingerprint={found!r} must be text"
        raise FolderError(f"{what}; {ANEW}")
    return found


def same_vocabulary(folder: RunFolder, problem: TaskData) -> None:
    """Raise DataError where the vocabulary that a run was trained with is not the problem's: ids would mislead."""
    before, now = _vocabulary(folder), json.loads(dumps(problem.vocabulary))
    differing = [name for name in now | before if now.get(name) != before.get(name)]
    if differing:
        raise DataError(
            f"{folder.file('vocabulary')}: its {differing[0]!r} is not that of the data; the model was trained on "
            "other data: give it those again, or train on these with --out DIR; the run is intact"
        )


def _vocabulary(folder: RunFolder) -> dict[str, Any]:
    if (found := read_file(folder, "vocabulary")) is None:
        raise FolderError(f"{folder.file('vocabulary')} is missing: put it back, or train the run anew with --out DIR")
    return found


ANEW = "--out DIR trains the run anew beside it, --fresh in its place"


# What helps where a file of a run is damaged. Its checkpoints may be intact.
MENDED = {
    "experiment": ANEW,
    "vocabulary": "remove that file alone, and attnlab run writes it anew from the data, unless the run is finished",
    "result": "remove that file alone, and attnlab run examines the last checkpoint again",
}
