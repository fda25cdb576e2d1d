"""Named variants of a study, and how to combine variations of several fields. Plain data; imports no jax."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from attnlab.data.names import composed
from attnlab.documented import Documented
from attnlab.lab.study.names import STUDY_FILES, check_folder_name

EXAMPLE = 'over("model.width", small=32, large=64)'  # in messages


@dataclass(frozen=True)
class Variation(metaclass=Documented):
    """Named variants, each with the fields that it changes.

    `a | b` has the variants of both, as `chain(a, b)`.

    Raises:
        ValueError: if there are no variants, or a variant is not a dict. Also if a name cannot name a folder, or ends
            like a file that the study keeps next to its variants. Also if two names would be the same folder on some
            systems, because they differ only in case or in the Unicode form of an accent.
    """

    variants: dict[str, dict[str, Any]]
    """For each variant, the value of every changed field by dotted path. The names become folder names."""

    def __post_init__(self):
        if not self.variants:
            raise ValueError("vary: expected at least one variant, got none")
        folders: dict[str, str] = {}
        for name, changes in self.variants.items():
            if not isinstance(changes, dict):
                raise ValueError(f"vary: {name!r} must be a dict of fields with their values, not {changes!r}")
            if name.casefold().endswith(STUDY_FILES):
                raise ValueError(f"vary: the name {name!r} must not end in one of {', '.join(STUDY_FILES)}")
            # Some file systems ignore case, and some treat composed and decomposed accents as equal.
            other = folders.setdefault(composed(check_folder_name(name)).casefold(), name)
            if other != name:
                raise ValueError(f"vary: the names {other!r} and {name!r} would be the same folder on some systems")

    def __or__(self, other: Variation) -> Variation:
        """Return the variants of both. Raises ValueError if both have a variant of the same name."""
        return chain(self, other)

    def fields(self) -> list[str]:
        """Return the paths that any variant sets, in order of first use and without repetition."""
        return list(dict.fromkeys(path for changes in self.variants.values() for path in changes))


def over(path: str, /, **values: object) -> Variation:
    """Vary one field over several named values: `over("model.mechanism", softmax=Softmax(), linear=Linear())`.

    Args:
        path: the dotted path of a field of the experiment, or of any config below it.
        **values: the value of the field in each variant, by the variant's name. Pass a name that is not a Python
            identifier as `**{"heads-2": 2}`. None is an ordinary value.

    Returns:
        A variation with one variant for each value.
    """
    return Variation({name: {path: value} for name, value in values.items()})


def product(*variations: Variation) -> Variation:
    """Combine every variant of each variation with every variant of the others (Cartesian product).

    Args:
        *variations: the variations to combine.

    Returns:
        A variation whose names are joined with "-", for example "softmax-small". The last variation varies fastest.

    Raises:
        ValueError: if two variations set the same field, because the later would undo the earlier. Also if two
            combinations get the same name.
    """
    _apart(variations)
    rows: list[tuple[str, dict[str, object]]] = [("", {})] if variations else []
    for variation in variations:
        rows = [
            (f"{first}-{second}" if first else second, {**some, **more})
            for first, some in rows
            for second, more in variation.variants.items()
        ]
    return _named(rows)


def zipped(*variations: Variation) -> Variation:
    """Combine the variations in parallel: first variant with first, second with second, and so on.

    For example, `zipped(over("model.width", small=32, large=64), over("model.heads", small=2, large=4))` has the
    variants "small" and "large".

    Args:
        *variations: variations of equal length.

    Returns:
        A variation with as many variants as each argument. If all arguments use the same name for a variant, it keeps
        that name. Otherwise the names are joined with "-".

    Raises:
        ValueError: if the variations differ in length, or two of them set the same field. Also if two variants get the
            same name, or the variations list the same names in a different order.
    """
    _apart(variations)
    if len(counts := list(dict.fromkeys(len(variation.variants) for variation in variations))) > 1:
        raise ValueError(f"vary: {counts[0]} variants cannot be zipped with {counts[1]}")
    rows = []
    for pairs in zip(*(variation.variants.items() for variation in variations), strict=True):
        names = list(dict.fromkeys(name for name, _ in pairs))
        for name in names:
            if len(names) > 1 and all(name in variation.variants for variation in variations):
                raise ValueError(
                    f"vary: {names[0]!r} would be zipped with {names[1]!r}; give the names in the same order"
                )
        rows.append(("-".join(names), {path: value for _, changes in pairs for path, value in changes.items()}))
    return _named(rows)


def chain(*variations: Variation) -> Variation:
    """Concatenate variations: the variants of the first, then those of the second, and so on.

    `a | b` is the same for two variations.

    Raises:
        ValueError: if two of them have a variant of the same name.
    """
    _check_kinds(variations)
    return _named([pair for variation in variations for pair in variation.variants.items()])


def _check_kinds(variations: tuple[Variation, ...]) -> None:
    """Raise ValueError if a value is not a Variation."""
    for value in variations:
        if not isinstance(value, Variation):
            raise ValueError(f"vary: expected a Variation, for example {EXAMPLE}, not {value!r}")


def _apart(variations: tuple[Variation, ...]) -> None:
    """Raise ValueError if a value is not a Variation, or two variations set the same field."""
    _check_kinds(variations)
    before: set[str] = set()
    for variation in variations:
        if twice := [path for path in variation.fields() if path in before]:
            raise ValueError(f"vary: {twice[0]} is set by two of the variations")
        before.update(variation.fields())


def _named(rows: list[tuple[str, dict[str, object]]]) -> Variation:
    """Build a variation from rows. Raises ValueError for a repeated name, which a dict would silently overwrite."""
    variants: dict[str, dict[str, object]] = {}
    for name, changes in rows:
        if name in variants:
            raise ValueError(f"vary: the name {name!r} is given twice")
        variants[name] = changes
    return Variation(variants)
