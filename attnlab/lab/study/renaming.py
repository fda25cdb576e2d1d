"""The names of variants after fields were set in all of them, and which of them became one experiment."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Renaming:
    """A field that was set in several variants: what its old value was called, by variant, and what the new one is.

    A variant's name is made of parts with "-" between. The parts that name the old value become `label`, or go where
    that is "". Where no part does, a `required` label is put in front. `otherwise` is the name where nothing is left.
    """

    old: dict[str, tuple[str, ...]]
    label: str = ""
    required: bool = False
    otherwise: str = ""

    def __call__(self, names: dict[str, str]) -> str | None:
        """The name of variants that are one experiment now, given the names that they had; None: it stays."""
        if not any(name in self.old for name in names):
            return None
        swapped = [_swapped(now, self.old.get(name, ()), self.label) for name, now in names.items()]
        replaced = [new for new in swapped if new is not None]
        shared = common(list(names.values()))
        if self.required:
            return replaced[0] if replaced else "-".join(part for part in (self.label, shared) if part)
        # A variant that never set the field is named by something else.
        if len(names) > 1 and (apart := [now for name, now in names.items() if name not in self.old]):
            return apart[0]
        if replaced and (self.label or len(names) == 1):
            return replaced[0] or self.otherwise
        return (shared or self.otherwise or None) if len(names) > 1 else None


def renamed(groups: Sequence[Sequence[str]], renamings: Iterable[Renaming]) -> list[str]:
    """A name for each group of variants that are one experiment now."""
    called = []
    renamings = list(renamings)
    for group in groups:
        names = {name: name for name in group}
        for renaming in renamings:
            if new := renaming(names):
                names = dict.fromkeys(group, new)
        called.append(names[group[0]])
    return called


def common(names: Sequence[str]) -> str:
    """The parts that all names begin and end with."""
    parts = [name.split("-") for name in names]
    shortest = min(map(len, parts))
    begin = next((n for n in range(shortest) if len({each[n] for each in parts}) > 1), shortest)
    left = shortest - begin
    end = next((n for n in range(left) if len({each[-1 - n] for each in parts}) > 1), left)
    first = parts[0]
    return "-".join(first[:begin] + first[len(first) - end :])


def _swapped(name: str, olds: Sequence[str], label: str) -> str | None:
    """The name with the first of the old values that stands in it replaced; None where none does."""
    for old in olds:
        if f"-{old}-" in f"-{name}-":
            return f"-{name}-".replace(f"-{old}-", f"-{label}-" if label else "-", 1).strip("-")
    return None
