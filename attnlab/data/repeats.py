"""Checks for examples and files that occur twice in a data set."""

from collections.abc import Hashable, Iterable, Mapping
from itertools import combinations
from pathlib import Path
from textwrap import shorten

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


def ambiguous(
    parts: Mapping[str, Iterable[tuple[Hashable, Hashable, str]]],
    what: str = "example",
    where: str = "in several classes",
) -> tuple[str, ...]:
    """Returns a line for each part in which equal inputs have several answers, of which only one can be correct.

    Args:
      parts: the input, the answer and the name of each example, by part.
      what: singular noun for the inputs, used in the lines.
      where: how the lines describe inputs with several answers.

    >>> ambiguous({"test": [("a.png", "cat", "1"), ("a.png", "dog", "2"), ("b.png", "cat", "3")]}, "picture")
    ('test: 1 picture is in several classes, of which only one can be correct: 1 and 2',)
    """
    lines = []
    for part, examples in parts.items():
        found: dict[Hashable, dict[Hashable, str]] = {}
        for given, answer, name in examples:
            found.setdefault(given, {}).setdefault(answer, name)
        if several := [answers.values() for answers in found.values() if len(answers) > 1]:
            count = f"1 {what} is" if len(several) == 1 else f"{len(several):,} {what}s are"
            first = " and ".join(shorten(name, 60, placeholder=" …") for name in dict.fromkeys(several[0]))
            lines.append(f"{part}: {count} {where}, of which only one can be correct: {first}")
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
