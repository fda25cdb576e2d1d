"""Names of variants after overrides have set fields that the study varies. Parts of a name are joined with "-"."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from attnlab import registry
from attnlab.console.format import listing
from attnlab.lab.study.field_paths import Changes, value_at, wrapped_field
from attnlab.lab.study.values import text


@dataclass(frozen=True)
class Label:
    """A value that an override has set in some variants, as it appears in their names."""

    variants: frozenset[str]
    """The names of the variants."""
    text: str
    """The last part of the name of merged variants. If it is empty, nothing is added."""
    alone: str
    """The whole name of merged variants whose names share no part."""
    wrong: frozenset[str] = frozenset()
    """The variants whose names would be wrong without the value. They get `alone` even if they are not merged."""
    path: str = ""
    """The path of the field."""


class Override(NamedTuple):
    """An override as text."""

    path: str
    """The path of the field."""
    given: str
    """The value."""


def label(variants: Iterable[str], override: Override, value: object, wrong: Iterable[str]) -> Label:
    """Return how a value that is set in variants appears in their names.

    Args:
        variants: the variants.
        override: the override that sets it.
        value: the value. If it is registered, it is called by the name that the override has, even if it keeps fields
            of the value that it replaces.
        wrong: the variants whose names would be wrong without the value.
    """
    path, given = override
    found = registry.find(value)
    name = given if found and given in registry.table(found[0]) else text(value)
    name = name.replace("*", "-x")  # a variant names a folder, which cannot contain "*" of a pattern
    alone = name if found else f"{path.rpartition('.')[2]}-{name}"
    return Label(frozenset(variants), name, alone, frozenset(wrong), path)


def label_below(
    base: object,
    seen: Mapping[str, Changes],
    variants: Mapping[str, Changes],
    labels: Sequence[Label],
    override: Override,
    values: Mapping[str, object],
) -> Label | None:
    """Return the label of a field below another, for example `model.attention`, or None if no name needs one.

    Args:
        base: the base experiment.
        seen: all changes of each variant.
        variants: the changes of each variant without those of the base.
        labels: the earlier labels.
        override: the override.
        values: the value in each variant that has the field.
    """
    upper, _, field = override.path.rpartition(".")
    labelled = any(label.path == upper for label in labels) and bool(upper)
    wrong: set[str] = set()
    for name, value in values.items():
        if labelled or upper in variants[name]:
            owner, old = (value_at(base, seen[name], path) for path in (upper, override.path))
            if wrapped_field(owner) == field or says_field(name, owner, field, old, value):
                wrong.add(name)
    below = any(override.path.startswith(f"{path}.") for own in variants.values() for path in own)
    return label(values, override, next(iter(values.values())), wrong) if values and (wrong or below) else None


def says(name: str, value: object) -> bool:
    """Return whether the name of a variant contains a value, as "heads-8" contains 8."""
    return f"-{text(value)}-" in f"-{name}-"


def says_field(name: str, owner: object, field: str, old: object, new: object) -> bool:
    """Return whether the name of a variant says which value a field has, so that a new value makes the name wrong.

    A name that says which registered value the variant has, for example "bahdanau", also says its mechanism, and the
    fields in which registered values of the same class differ, here `attention`. It says nothing about numbers.

    Args:
        name: the name of the variant.
        owner: the value that has the field, which the variant is named after.
        field: the name of the field.
        old: the present value of the field.
        new: the new value.
    """
    if old == new or isinstance(new, int | float | tuple):
        return False
    found, new_found = registry.find(owner), registry.find(new)
    if found is None or (field == "mechanism" and new_found and new_found[0] in ("MECHANISMS", "PATTERNS")):
        return found is not None
    alike = [getattr(value, field) for value in registry.table(found[0]).values() if type(value) is type(owner)]
    return says(name, old) or any(value != alike[0] for value in alike)


def name_of(group: Sequence[str], labels: Sequence[Label], varies: bool = True) -> str:
    """Return the name of variants that are now one experiment.

    It consists of the parts that all their names share, followed by the values that were set. A variant that is not
    merged keeps its name, followed by the values that would make it wrong.

    Args:
        group: the names of the variants.
        labels: the values that overrides have set.
        varies: whether any variant of the study still sets a field. If none does, their old names mean nothing.
    """
    own = [label for label in labels if not label.variants.isdisjoint(group)]
    if len(group) == 1 and (varies or not own):
        return "-".join([group[0], *(label.alone for label in own if group[0] in label.wrong)])
    if not (shared := common(group) if varies else ""):
        return "-".join(label.alone for label in own)
    added = [label for label in own if label.text]
    return "-".join([shared, *(label.text if len(added) == 1 else label.alone for label in added)])


def names_of(groups: Sequence[Sequence[str]], labels: Sequence[Label], varies: bool) -> list[str]:
    """Return the names of variants, each of which is a group of old ones that are now one experiment.

    If two would have the same name, each of them is called by the first of its old names, followed by the values.

    Args:
        groups: the old names of each variant.
        labels: the values that overrides have set.
        varies: whether any variant of the study still sets a field.
    """
    short = [name_of(group, labels, varies) for group in groups]
    names: list[str] = []
    for group, name in zip(groups, short, strict=True):
        own = [label.alone for label in labels if not label.variants.isdisjoint(group)]
        names.append(name if short.count(name) == 1 else "-".join([group[0], *own]))
    return names if len({*names}) == len(names) else [group[0] for group in groups]


def renamed(groups: Mapping[str, Sequence[str]]) -> list[str]:
    """Return lines on the variants that are merged or renamed.

    Args:
        groups: the old names of each variant, by its new name.
    """
    lines: list[str] = []
    longer: dict[str, list[str]] = {}
    for new, old in groups.items():
        if len(old) > 1:
            lines.append(f"{listing(old)} are now one variant, {new}")
        elif new.startswith(f"{old[0]}-"):
            longer.setdefault(new.removeprefix(old[0]), []).append(old[0])
        elif new != old[0]:
            lines.append(f"{old[0]} is now named {new}")
    for end, old in longer.items():
        one = len(old) == 1
        lines.append(
            f"{old[0]} is now named {old[0]}{end}" if one else f"{listing(old)} are now named with {end} added"
        )
    return lines


def common(names: Sequence[str]) -> str:
    """Return the parts that all names begin and end with, joined."""
    parts = [name.split("-") for name in names]
    shortest = min(map(len, parts))
    begin = next((n for n in range(shortest) if len({each[n] for each in parts}) > 1), shortest)
    left = shortest - begin
    end = next((n for n in range(left) if len({each[-1 - n] for each in parts}) > 1), left)
    first = parts[0]
    return "-".join(first[:begin] + first[len(first) - end :])
