"""Access to the fields of an experiment by dotted paths, and parsing of their values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from types import NoneType
from typing import Any, Literal, get_origin

from attnlab import registry
from attnlab.console.format import listing
from attnlab.data.names import PARTS
from attnlab.lab.study.recipe import shares
from attnlab.lab.study.values import WORDS, annotations, members, parse
from attnlab.pattern import Pattern, read_pattern
from attnlab.tasks.base.task import Task

Changes = dict[str, object]  # path → value


def value_at(base: Any, changes: Changes, path: str) -> Any:
    """Return the value at a path after changes. Raises ValueError if there is no such field.

    Args:
        base: The config that the path starts at.
        changes: New values by path, which replace those of `base`.
        path: The names of fields, joined by dots.
    """
    names = path.split(".")
    uppers = [".".join(names[:depth]) for depth in range(len(names), 0, -1)]
    changed = next((upper for upper in uppers if upper in changes), None)
    value = base if changed is None else changes[changed]
    for depth in range(changed.count(".") + 1 if changed else 0, len(names)):
        name = names[depth]
        if isinstance(value, Pattern):
            upper = ".".join(names[:depth])
            raise ValueError(f"{upper}.{name}: {upper} is a pattern; set the whole pattern, for example {upper}=A*3+B")
        if name not in registry.field_names(value):
            raise ValueError(registry.no_field(value, name, ".".join(names[: depth + 1])) + _reads_files(value, name))
        value = getattr(value, name)
    return value


def takes_field(old: object, new: object, path: str, below: str) -> bool:
    """Return whether `new`, which replaces `old` at `path`, has the same field as `old` at the path `below`.

    Args:
        old: The value that is replaced.
        new: The value that replaces it.
        path: The path of both values: names of fields, joined by dots.
        below: A path that begins with `path` and a dot. Only its first name after `path` is compared.
    """
    return shares(old, new, below.removeprefix(f"{path}.").partition(".")[0])


def wrapped_field(value: object) -> str | None:
    """Return the name of the field that holds another config of the same registry, or None."""
    here = registry.find(value)
    inside = ((name, registry.find(getattr(value, name))) for name in registry.field_names(value))
    return next((name for name, found in inside if here and found and found[0] == here[0]), None)


def contains(value: object, searched: list[object]) -> bool:
    """Return whether a field of a value, at any depth, holds one of the searched values."""
    fields = [getattr(value, name) for name in registry.field_names(value)]
    return any(each in searched or contains(each, searched) for each in fields)


def _reads_files(task: object, name: str) -> str:
    """Return a hint at tasks of the same kind that read your own files, if this task does not."""
    if name not in PARTS or (found := registry.find(task)) is None or found[0] != "TASKS":
        return ""
    kind, base = type(task), type(task).__base__
    kin = [
        other
        for other, held in registry.table("TASKS").items()
        if name in registry.field_names(held)
        and (type(held).__module__ == kind.__module__ or (type(held).__base__ is base and base is not Task))
    ]
    return f"; to read your own files, set task={' or task='.join(kin)}" if kin else ""


def has_field(base: Any, changes: Changes, path: str) -> bool:
    """Return whether there is a field at a path after changes.

    Args:
        base: The config that the path starts at.
        changes: New values by path, which replace those of `base`.
        path: The names of fields, joined by dots.
    """
    with suppress(ValueError):
        value_at(base, changes, path)
        return True
    return False


def no_variant_has(base: Any, variants: Sequence[Changes], path: str) -> str:
    """Return the error message that no variant has a field at a path, with the fields that exist there.

    Args:
        base: The config that the path starts at.
        variants: All changes of each variant.
        path: The names of fields, joined by dots.
    """
    upper, _, name = path.rpartition(".")
    holders = [value_at(base, own, upper) for own in variants if has_field(base, own, upper)]
    known = dict.fromkeys(field for holder in holders for field in registry.field_names(holder))
    return registry.unknown(f"{path}: no variant has a field {name!r} in {upper}", name, known)


def read_value(base: Any, changes: Changes, path: str, given: str) -> Any:
    """Parse the value of the field at a path. Raises ValueError if the text does not fit.

    Args:
        base: The config that the path starts at.
        changes: New values by path, which replace those of `base`.
        path: The names of fields, joined by dots.
        given: The value as text.
    """
    current = value_at(base, changes, path)
    upper, _, name = path.rpartition(".")
    allowed = annotations(type(value_at(base, changes, upper) if upper else base)).get(name, object)
    if allowed in (Any, object):
        # The annotation allows anything, so the type of the present value decides.
        allowed = type(current)
    kinds = members(allowed)
    # Plain values have no registry, even if there is one of the field's name, as for `attention` of Seq2Seq.
    plain = all(get_origin(kind) is Literal or kind in WORDS for kind in kinds)
    place = None if plain else registry.home(current, name, kinds)
    if place is None:
        try:
            return parse(allowed, given)
        except ValueError as refusal:
            raise ValueError(f"{path}={given!r} {refusal}") from None
    if Pattern in kinds:
        place = registry.home(None, name, [kind for kind in kinds if kind is not Pattern]) or place
        if "+" in given or "*" in given:
            return read_pattern(given, place, path)
    if given.lower() == "none" and NoneType in kinds and "none" not in registry.table(place):
        return None
    return registry.pick(registry.table(place), given, path)


def read_fitting(base: Any, variants: Mapping[str, Changes], path: str, given: str) -> Changes:
    """Parse the value of the field at a path in each variant, and return it for the variants whose field it fits.

    Args:
        base: The config that the path starts at.
        variants: All changes of each variant that has the field.
        path: The names of fields, joined by dots.
        given: The value as text.

    Raises:
        ValueError: The text fits in no variant. If their fields are of different kinds, the message has all reasons.
    """
    values: Changes = {}
    refusals: dict[str, list[str]] = {}
    for name, changes in variants.items():
        try:
            values[name] = read_value(base, changes, path, given)
        except ValueError as refusal:
            refusals.setdefault(str(refusal), []).append(name)
    if not values and refusals:
        reasons = [f"{words} (in {listing(names)})" for words, names in refusals.items()]
        raise ValueError("; ".join(reasons) if len(reasons) > 1 else next(iter(refusals)))
    return values
