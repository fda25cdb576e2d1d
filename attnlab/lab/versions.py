"""The versions and the machine that a run was made with: those of its first step, and those that it went on with."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

from attnlab.lab.quantity import NONE


def onward(record: dict[str, Any], now: dict[str, Any], step: int) -> dict[str, Any]:
    """The record of a run that goes on from `step` with what `attnlab.lab.folder.environment` says `now`.

    It holds what was first, and where that did not stay so "later", a list of {"step", ...}: with what the run went on
    from which step. What was trained behind the step that a run goes on from is trained again, and what is said of it
    goes with it.
    """
    if not step:
        return now
    first, later = _parts(record)
    later = [one for one in later if one["step"] < step]
    if _differing([first, *later][-1], now):
        later.append({"step": step, **now})
    return first | ({"later": later} if later else {})


def exchanged(record: dict[str, Any], step: int) -> str | None:
    """What changed at that step, the last of its record, in words; None where nothing is known to have changed.

    A record of an older attnlab lacks some names: what they were then is not known.
    """
    first, later = _parts(record)
    if not later or later[-1]["step"] != step:
        return None
    before, after = [first, *later][-2:]
    names = [name for name in _differing(before, after) if name in before]
    return ", ".join(f"{name} {after[name]} (was {before[name]})" for name in names) or None


def told(record: dict[str, Any]) -> dict[str, Any]:
    """A record as a person reads it: by name what was first and, where that did not stay, what from which step."""
    first, later = _parts(record)
    found = dict(first)
    for before, after in pairwise([first, *later]):
        for name in _differing(before, after):
            found[name] = f"{found.get(name, NONE)}; from step {after['step']:,}: {after[name]}"
    return found


def _differing(before: dict[str, Any], after: dict[str, Any]) -> list[str]:
    return [name for name, value in after.items() if name != "step" and value != before.get(name)]


def _parts(record: dict[str, Any]) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """What was first, and what came later."""
    listed = record.get("later")
    later = [one for one in listed if isinstance(one, dict)] if isinstance(listed, list) else []
    first = {name: value for name, value in record.items() if name != "later"}
    return first, [one for one in later if type(one.get("step")) is int]
