"""The history of versions and machine of a run: those of its first step, and those that it resumed with."""

from __future__ import annotations

from itertools import pairwise

from attnlab.console.format import NONE
from attnlab.lab.runs.run_folder import JsonObject


def continued(record: JsonObject, now: JsonObject, step: int) -> JsonObject:
    """Return the environment record of a run that resumes at a step.

    Entries at or after `step` are dropped, because those steps are trained again.

    Args:
        record: the record so far, the content of `environment.json`.
        now: the present environment, from `attnlab.system.environment.environment`.
        step: the step at which the run resumes. 0 starts a new record.

    Returns:
        The first environment, and under "later", if it changed, a list of {"step", ...}: each environment with the
        step from which it was used.
    """
    if not step:
        return now
    first, later = _parts(record)
    later = [one for one in later if one["step"] < step]
    if _differing([first, *later][-1], now):
        later.append({"step": step, **now})
    return first | ({"later": later} if later else {})


def changed_at(record: JsonObject, step: int) -> str | None:
    """Describe what changed at a step, if the last change of the record was there.

    A name that an older attnlab did not record is skipped, because its previous value is unknown.

    Returns:
        A text such as "jax 0.6 (was 0.5)", or None if no change is known.
    """
    first, later = _parts(record)
    if not later or later[-1]["step"] != step:
        return None
    before, after = [first, *later][-2:]
    names = [name for name in _differing(before, after) if name in before]
    return ", ".join(f"{name} {after[name]} (was {before[name]})" for name in names) or None


def changes_in_words(record: JsonObject) -> JsonObject:
    """Return a record for display: by name the first value and, if it changed, the later values with their steps."""
    first, later = _parts(record)
    found = dict(first)
    for before, after in pairwise([first, *later]):
        for name in _differing(before, after):
            found[name] = f"{found.get(name, NONE)}; from step {after['step']:,}: {after[name]}"
    return found


def _differing(before: JsonObject, after: JsonObject) -> list[str]:
    """Return the names whose values in `after` differ from those in `before`."""
    return [name for name, value in after.items() if name != "step" and value != before.get(name)]


def _parts(record: JsonObject) -> tuple[JsonObject, list[JsonObject]]:
    """Split a record into the first environment and the well-formed later entries."""
    listed = record.get("later")
    later = [one for one in listed if isinstance(one, dict)] if isinstance(listed, list) else []
    first = {name: value for name, value in record.items() if name != "later"}
    return first, [one for one in later if type(one.get("step")) is int]
