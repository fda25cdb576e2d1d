"""What varies in a study: named variants, and how those of several fields go together. Plain data; imports no jax."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from attnlab.data.names import composed
from attnlab.lab.study.names import STUDY_FILES, check_folder_name


@dataclass(frozen=True)
class Variation:
    """Named variants, each a set of fields with the value it gives them. The names become folders.

    Raises ValueError for no variants, for one that is no dict, for a name that cannot be a folder's or ends as a file's
    of the study does, and for two names that some systems would give one folder.
    """

    variants: dict[str, dict[str, Any]]

    def __post_init__(self):
        if not self.variants:
            raise ValueError("vary: at least one variant must be named")
        folders: dict[str, str] = {}
        for name, changes in self.variants.items():
            if not isinstance(changes, dict):
                raise ValueError(f"vary: {name!r} must be a dict of fields with their values, not {changes!r}")
            if name.casefold().endswith(STUDY_FILES):
                raise ValueError(f"vary: {name!r} ends as a file does that a study keeps beside its variants")
            # Some systems keep one folder for both cases of a letter, and one for both spellings of an accent.
            other = folders.setdefault(composed(check_folder_name(name)).casefold(), name)
            if other != name:
                raise ValueError(f"vary: the names {other!r} and {name!r} would be one folder on some systems")

    def __or__(self, other: Variation) -> Variation:
        """The variants of both. Raises ValueError for a name that both give."""
        return chain(self, other)

    def fields(self) -> list[str]:
        """The paths that any variant sets, in order."""
        return list(dict.fromkeys(path for changes in self.variants.values() for path in changes))


def over(path: str, /, **values: Any) -> Variation:
    """One field, several named values: `over("model.mechanism", softmax=Softmax(), linear=Linear())`.

    Any field of an experiment, and of any config below it. A name that is no Python name goes in as `**{"heads-2": 2}`.
    None is a value like any other.
    """
    return Variation({name: {path: value} for name, value in values.items()})


def product(*variations: Variation) -> Variation:
    """Every variant of one with every variant of the others, named with "-" between, the last one varying fastest.

    Raises ValueError where two of them set one field (the later would undo the earlier), and where two variants come to
    one name.
    """
    rows: list[tuple[str, dict[str, Any]]] = [("", {})]
    _apart(variations)
    for variation in variations:
        rows = [
            (f"{first}-{second}" if first else second, {**some, **more})
            for first, some in rows
            for second, more in variation.variants.items()
        ]
    return _named(rows)


def zipped(*variations: Variation) -> Variation:
    """The first variant of one with the first of the others, the second with the second, and so on.

    Where all give a variant one name, that is its name; else their names with "-" between:
    `zipped(over("model.width", small=32, large=64), over("model.heads", small=2, large=4))` is small and large.

    Raises ValueError where one has fewer variants than another, where two of them set one field, where two come to one
    name, and where they give the same names in another order.
    """
    _apart(variations)
    if len(counts := list(dict.fromkeys(len(variation.variants) for variation in variations))) > 1:
        raise ValueError(f"vary: {counts[0]} variants cannot be zipped with {counts[1]}")
    rows = []
    for pairs in zip(*(variation.variants.items() for variation in variations), strict=True):
        names = list(dict.fromkeys(name for name, _ in pairs))
        for name in names:
            if len(names) > 1 and all(name in variation.variants for variation in variations):
                raise ValueError(f"vary: {names[0]!r} would be zipped with {names[1]!r}: give the names in one order")
        rows.append(("-".join(names), {path: value for _, changes in pairs for path, value in changes.items()}))
    return _named(rows)


def chain(*variations: Variation) -> Variation:
    """The variants of one, then those of the next; `a | b` is the same of two.

    Raises ValueError for a name that two of them give.
    """
    return _named([pair for variation in variations for pair in variation.variants.items()])


def _apart(variations: tuple[Variation, ...]) -> None:
    """Refuse a field that two variations set."""
    before: set[str] = set()
    for variation in variations:
        if twice := [path for path in variation.fields() if path in before]:
            raise ValueError(f"vary: {twice[0]} is set by two of the variations")
        before.update(variation.fields())


def _named(rows: list[tuple[str, dict[str, Any]]]) -> Variation:
    """The variation of these variants. A dict alone would keep the last of a name without a word."""
    variants: dict[str, dict[str, Any]] = {}
    for name, changes in rows:
        if name in variants:
            raise ValueError(f"vary: the name {name!r} is given twice")
        variants[name] = changes
    return Variation(variants)
