"""Checks for examples and files that are in two parts of a data set."""

from collections.abc import Hashable, Iterable, Mapping
from itertools import combinations
from pathlib import Path

import numpy as np

from attnlab.data.io.files import DataError, user_path


def repeated(
    parts: Mapping[str, Iterable[Hashable]], what: str = "examples", within: str | None = None
) -> tuple[str, ...]:
    """Returns a line for each pair of parts that share examples.

    Args:
      parts: the examples of each part, by its name, in order.
      what: plural noun for the examples, used in the lines.
      within: name of a part. If it is given, later parts are compared with this part only. By default each part is
        compared with all parts before it.

    >>> repeated({"train": "abc", "valid": "xyz", "test": "bbx"})
    ('test: 2 of 3 examples are also in train', 'test: 1 of 3 examples is also in valid')
    """
    held = {part: list(examples) for part, examples in parts.items()}
    lines = []
    for other, part in combinations(held, 2):
        known = set(held[other]) if within in (None, other) else set()
        if count := sum(example in known for example in held[part]):
            are = "is" if count == 1 else "are"
            lines.append(f"{part}: {count:,} of {len(held[part]):,} {what} {are} also in {other}")
    return tuple(lines)


def hashes(arrays: Iterable[np.ndarray]) -> list[int]:
    """Returns a hash of the bytes of each array, with which `repeated` compares arrays."""
    return [hash(array.tobytes()) for array in arrays]


def distinct(names: Mapping[str, str | Path]) -> None:
    """Checks that no two parts use the same file, folder or pair of files.

    Args:
      names: the path of each part, by its name. Two files are written with a comma between them.

    Raises:
      DataError: if two parts name the same path.
    """
    found: dict[tuple[Path, ...], str] = {}
    for part, name in names.items():
        try:
            place = tuple(user_path(each).resolve() for each in str(name).split(","))
        except (OSError, ValueError, RuntimeError):
            continue  # an invalid name, or a loop of links: the reader of the file reports it
        if (other := found.setdefault(place, part)) != part:
            raise DataError(f"{name} is both task.{other} and task.{part}; each part needs its own data")
