"""Checks that a run folder has the expected configuration, data and vocabulary."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import suppress

from attnlab.data.io.files import DataError
from attnlab.lab.runs.run_folder import FolderError, JsonObject, RunFolder
from attnlab.lab.study import serialize
from attnlab.lab.study.study import Experiment
from attnlab.lab.study.user_code import missing
from attnlab.storage.json_file import encode_json
from attnlab.tasks.base.task import TaskData
from attnlab.training.checkpoints import Checkpoints, Keep

# Not --fresh: what else the folder holds may be intact.
ANEW = "train the run again in another folder: attnlab run with --out DIR"


def experiment_of(folder: RunFolder, written: JsonObject) -> Experiment:
    """Return the experiment in the content of `experiment.json`. Raises FolderError if it cannot be read back."""
    try:
        return serialize.read(written["experiment"])
    except (ValueError, NotImplementedError) as error:
        found = missing(written)
        trained_with = f"; it was trained with {' and '.join(found)}" if found else ""
        raise FolderError(f"{folder.file('experiment')}: {error}{trained_with}") from error


def checkpoints_of(
    folder: RunFolder, data: str, keep: Keep = Keep(), note: Callable[[str], None] = lambda line: None
) -> Checkpoints:
    """Return the checkpoints of a run, which are bound to its configuration and data.

    The identity uses the configuration as it is written in the folder, without fields that were added since. So the
    checkpoints of an older attnlab stay valid.

    Args:
        folder: the run folder.
        data: the fingerprint of the data.
        keep: the checkpoints to keep.
        note: called with a line for each checkpoint that is damaged.
    """
    written = (read_file(folder, "experiment") or {}).get("experiment")
    identity = {"configuration": serialize.identity(written), "data": data}
    return Checkpoints(folder.path / "checkpoints", identity=identity, keep=keep, note=note)


def read_file(folder: RunFolder, name: str) -> JsonObject | None:
    """Read a file of a run, or return None if it is missing. Raises FolderError, with a remedy, if it is damaged."""
    try:
        return folder.read(name)
    except FolderError as error:
        # After an OSError, for example a missing permission, the remedy would not help.
        hint = "" if isinstance(error.__cause__, OSError) else f"; {_remedy(folder, name)}"
        raise FolderError(f"{error}{hint}") from error


def _remedy(folder: RunFolder, name: str) -> str:
    """Return what recovers a damaged file of a run."""
    if name == "result" and Checkpoints(folder.path / "checkpoints").steps():
        return "remove only that file, and attnlab run evaluates the last checkpoint again"
    if name == "vocabulary" and not folder.file("result").exists():
        return "remove only that file, and attnlab run writes it again from the data"
    return ANEW


def environment_of(folder: RunFolder) -> JsonObject:
    """Return the content of `environment.json`, or an empty dict if it is missing or damaged."""
    with suppress(FolderError):
        return folder.read("environment") or {}
    return {}


def same_data(folder: RunFolder, written: JsonObject, problem: TaskData) -> None:
    """Raise DataError if a run was trained on other data.

    Args:
        folder: the run folder.
        written: the content of its `experiment.json`.
        problem: the data that the task has loaded now.
    """
    before, now = fingerprint(folder, written), problem.fingerprint
    if before != now:
        raise DataError(
            f"{folder.path} was trained on other data (fingerprint {before[:12]}, now {now[:12]}), and is unchanged; "
            "restore that data, or train on the present data with --out DIR"
        )


def fingerprint(folder: RunFolder, written: JsonObject) -> str:
    """Return the data fingerprint in the content of `experiment.json`. Raises FolderError if there is none."""
    if not isinstance(found := written.get("fingerprint"), str):
        what = f"{folder.file('experiment')}: fingerprint={found!r} must be text"
        raise FolderError(f"{what}; {ANEW}")
    return found


def same_vocabulary(folder: RunFolder, problem: TaskData) -> None:
    """Raise DataError if a run's vocabulary differs from the problem's, because token ids would have other meanings."""
    before, now = _vocabulary(folder), json.loads(encode_json(problem.vocabulary))
    differing = [name for name in now | before if now.get(name) != before.get(name)]
    if differing:
        raise DataError(
            f"{folder.file('vocabulary')}: {differing[0]!r} differs from that of the data, so the run was trained on "
            "other data, and is unchanged; restore that data, or train on the present data with --out DIR"
        )


def _vocabulary(folder: RunFolder) -> JsonObject:
    """Read `vocabulary.json`. Raises FolderError if it is missing."""
    if (found := read_file(folder, "vocabulary")) is None:
        raise FolderError(f"{folder.file('vocabulary')} is missing; restore it, or train the run again with --out DIR")
    return found
