"""What is in two parts that should be in one."""

from collections.abc import Hashable, Iterable, Mapping
from itertools import combinations
from pathlib import Path

from attnlab.data.io.files import DataError, user_path


def repeated(
    parts: Mapping[str, Iterable[Hashable]], what: str = "examples", within: str | None = None
) -> tuple[str, ...]:
    """A line for each part of which examples (or `what`) stand in an earlier one, too, or in that named by `within`.

    >>> repeated({"train": "abc", "valid": "xyz", "test": "bbx"})
    ('test: 2 of 3 examples stand in train, too', 'test: 1 of 3 examples stand in valid, too')
    """
    held = {part: list(examples) for part, examples in parts.items()}
    lines = []
    for other, part in combinations(held, 2):
        known = set(held[other]) if within in (None, other) else set()
        if count := sum(example in known for example in held[part]):
            lines.append(f"{part}: {count:,} of {len(held[part]):,} {what} stand in {other}, too")
    return tuple(lines)


def distinct(names: Mapping[str, str | Path]) -> None:
    """Raise DataError where two parts name one file or folder, or the same two files with a comma between them."""
    found: dict[tuple[Path, ...], str] = {}
    for part, name in names.items():
        try:
            place = tuple(user_path(each).resolve() for each in str(name).split(","))
        except (OSError, ValueError, RuntimeError):
            continue  # a name that the system cannot have, or a loop of links: who reads it says so
        if (other := found.setdefault(place, part)) != part:
            raise DataError(f"{name} is both task.{other} and task.{part}: each part needs data of its own")
