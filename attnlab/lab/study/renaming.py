"""New names for variants after overrides have set fields in them and made some of them equal."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Renaming:
    """The renaming of variants in which an override has set a field.

    A variant's name consists of parts joined with "-". The parts that name the old value are replaced by `label`.
    """

    old: dict[str, tuple[str, ...]]
    """The possible names of the old value, by variant."""
    label: str = ""
    """The name of the new value. If it is empty, the parts are removed."""
    required: bool = False
    """Whether to put the label in front if no part names the old value."""
    otherwise: str = ""
    """The name to use if no part is left."""

    def __call__(self, names: dict[str, str]) -> str | None:
        """Return the new name of variants that are now one experiment, or None to keep it.

        Args:
            names: the present name of each variant, by its original name.
        """
        if not any(name in self.old for name in names):
            return None
        swapped = [_swapped(now, self.old.get(name, ()), self.label) for name, now in names.items()]
        replaced = [new for new in swapped if new is not None]
        shared = common(list(names.values()))
        if self.required:
            return replaced[0] if replaced else "-".join(part for part in (self.label, shared) if part)
        # A variant that never set the field is named by something else.
        if len(names) > 1 and (unset := [now for name, now in names.items() if name not in self.old]):
            return unset[0]
        if replaced and (self.label or len(names) == 1):
            return replaced[0] or self.otherwise
        return (shared or self.otherwise or None) if len(names) > 1 else None


def renamed(groups: Sequence[Sequence[str]], renamings: Iterable[Renaming]) -> list[str]:
    """Return a name for each group of variants that are now one experiment."""
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
    """Return the parts that all names begin and end with, joined."""
    parts = [name.split("-") for name in names]
    shortest = min(map(len, parts))
    begin = next((n for n in range(shortest) if len({each[n] for each in parts}) > 1), shortest)
    left = shortest - begin
    end = next((n for n in range(left) if len({each[-1 - n] for each in parts}) > 1), left)
    first = parts[0]
    return "-".join(first[:begin] + first[len(first) - end :])


def _swapped(name: str, olds: Sequence[str], label: str) -> str | None:
    """Return the name with the first old value that occurs in it replaced, or None if none occurs."""
    for old in olds:
        if f"-{old}-" in f"-{name}-":
            return f"-{name}-".replace(f"-{old}-", f"-{label}-" if label else "-", 1).strip("-")
    return None
