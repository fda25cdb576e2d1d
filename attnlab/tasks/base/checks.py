"""What a task's fields may hold. Every check raises ValueError naming the field and the value."""

from collections.abc import Iterable
from dataclasses import fields
from typing import Any

from attnlab.data import repeats
from attnlab.data.text.units import TokenizerSpec


def counts(task: Any, fields: Iterable[str], least: int = 1, most: int = 2**31 - 1) -> None:
    """Each of the fields must be a whole number in `least` … `most`."""
    for field in fields:
        value = getattr(task, field)
        if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
            raise ValueError(f"task.{field}={value!r} must be a whole number in {least} … {most}")


def examples(task: Any, parts: Iterable[str]) -> None:
    """How many examples each of the parts is to have: they are all held in memory."""
    counts(task, [f"{part}_examples" for part in parts], most=10_000_000)


def seed(task: Any) -> None:
    """The seed must fit in 32 bits."""
    counts(task, ["seed"], least=0, most=2**32 - 1)


def unused(task: Any, given: str, names: Iterable[str]) -> None:
    """Where the field `given` says what others would otherwise decide, these must stand as they are by default."""
    defaults = {field.name: field.default for field in fields(task)}
    for name in names:
        if (value := getattr(task, name)) != defaults[name]:
            raise ValueError(f"task.{name}={value!r} decides nothing beside task.{given}={getattr(task, given)!r}")


def text(task: Any) -> None:
    """What tasks of pairs of texts have in common: units, a share of smoothing, buckets."""
    units(task)
    smoothing(task)
    buckets(task)


def units(task: Any) -> None:
    """What the symbols of a text are."""
    if not isinstance(task.units, TokenizerSpec):
        raise ValueError(f"task.units={task.units!r} must be units of text, such as those of attnlab.UNITS")


def files(task: Any) -> None:
    """Each part must have a file, and one of its own: DataError where two name one."""
    names = {part: getattr(task, part) for part in ("train", "valid", "test")}
    for part, name in names.items():
        if not name:
            raise ValueError(f"task.{part}={name!r} must name a file: attnlab cannot know yours")
    repeats.distinct(names)


def smoothing(task: Any) -> None:
    """The share of a target that all symbols have alike."""
    if isinstance(task.smoothing, bool) or not isinstance(task.smoothing, int | float) or not 0 <= task.smoothing < 1:
        raise ValueError(f"task.smoothing={task.smoothing!r} must be at least 0 and below 1")


def buckets(task: Any) -> None:
    """How many lengths batches come in: each is a shape to compile for."""
    counts(task, ["buckets"], most=16)
