"""What is in two parts that should be in one."""

from collections.abc import Hashable, Iterable, Mapping
from pathlib import Path

from attnlab.data.files import DataError, own


def repeated(parts: Mapping[str, Iterable[Hashable]], what: str = "examples", first: str = "train") -> tuple[str, ...]:
    """A line for each part, but the `first`, of which examples (or `what`) stand in that, too.

    >>> repeated({"train": "abc", "test": "bbx"})
    ('test: 2 of 3 examples stand in train, too',)
    """
    known, lines = set(parts[first]), []
    for part, examples in parts.items():
        there = [example in known for example in examples]
        if part != first and any(there):
            lines.append(f"{part}: {sum(there):,} of {len(there):,} {what} stand in {first}, too")
    return tuple(lines)


def distinct(names: Mapping[str, str | Path]) -> None:
    """Raise DataError where two parts name one file or folder, or the same two files with a comma between them."""
    found: dict[tuple[Path, ...], str] = {}
    for part, name in names.items():
        try:
            place = tuple(own(each).resolve() for each in str(name).split(","))
        except (OSError, ValueError, RuntimeError):
            continue  # a name that the system cannot have, or a loop of links: who reads it says so
        if (other := found.setdefault(place, part)) != part:
            raise DataError(f"{name} is both task.{other} and task.{part}: each part needs data of its own")
