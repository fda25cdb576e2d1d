"""Names of variants after overrides have set fields that the study varies. Parts of a name are joined with "-"."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from attnlab import registry
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
    always: bool = False
    """Whether variants that are not merged get `text` as well, because the old name would be wrong."""


def label(variants: frozenset[str], path: str, value: object, *, always: bool) -> Label:
    """Return how a value that is set at a path appears in the names of variants."""
    name = text(value).replace("*", "-x")  # a variant names a folder, which cannot contain "*" of a pattern
    return Label(variants, name, name if registry.find(value) else f"{path.rpartition('.')[2]}-{name}", always)


def name_of(group: Sequence[str], labels: Sequence[Label], varies: bool = True) -> str:
    """Return the name of variants that are now one experiment.

    It consists of the parts that all their names share, followed by the values that were set. A variant that is not
    merged keeps its name.

    Args:
        group: the names of the variants.
        labels: the values that overrides have set.
        varies: whether any variant of the study still sets a field. If none does, their old names mean nothing.
    """
    own = [label for label in labels if not label.variants.isdisjoint(group)]
    if len(group) == 1 and (varies or not own):
        return "-".join([group[0], *(label.text for label in own if label.always)])
    if not (shared := common(group) if varies else ""):
        return "-".join(label.alone for label in own)
    return "-".join([shared, *(label.text for label in own if label.text)])


def common(names: Sequence[str]) -> str:
    """Return the parts that all names begin and end with, joined."""
    parts = [name.split("-") for name in names]
    shortest = min(map(len, parts))
    begin = next((n for n in range(shortest) if len({each[n] for each in parts}) > 1), shortest)
    left = shortest - begin
    end = next((n for n in range(left) if len({each[-1 - n] for each in parts}) > 1), left)
    first = parts[0]
    return "-".join(first[:begin] + first[len(first) - end :])
