"""Checks of a task's fields. Every check raises ValueError and names the field and the value."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import Field, fields
from typing import ClassVar, Protocol

from attnlab.data import repeats
from attnlab.data.text.units import TokenizerSpec
from attnlab.tasks.base.parts import FileFields, paths


class DataclassInstance(Protocol):
    """An instance of a dataclass."""

    __dataclass_fields__: ClassVar[dict[str, Field]]


class LengthFields(Protocol):
    """A task with the field `tested`."""

    @property
    def tested(self) -> tuple[int, ...]:
        """The lengths of the test sequences."""
        ...


class UnitsField(Protocol):
    """A task with the field `units`."""

    @property
    def units(self) -> TokenizerSpec:
        """The units (tokenizer) of a text."""
        ...


class SmoothingField(Protocol):
    """A task with the field `smoothing`."""

    @property
    def smoothing(self) -> float:
        """The fraction of label smoothing."""
        ...


class TextFields(UnitsField, SmoothingField, Protocol):
    """A task with both fields."""


def counts(task: object, fields: Iterable[str], least: int = 1, most: int = 2**31 - 1) -> None:
    """Checks that each of the fields is an integer in `least` … `most`.

    Args:
        task: The task.
        fields: The names of the fields.
        least: The smallest allowed value. Default: 1.
        most: The largest allowed value. Default: 2³¹ − 1.

    Raises:
        ValueError: If a field is not. The message names the field.
    """
    for field in fields:
        value = getattr(task, field)
        if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
            raise ValueError(f"task.{field}={value!r} must be a whole number in {least} … {most}")


def lengths(task: LengthFields, least: int) -> None:
    """Checks `length` and `tested`, the lengths of training and test sequences, each in `least` … 1000000."""
    counts(task, ["length"], least=least, most=1_000_000)
    listed = isinstance(task.tested, Sequence) and task.tested
    if not listed or any(type(n) is not int or not least <= n <= 1_000_000 for n in task.tested):
        raise ValueError(f"task.tested={task.tested!r} must list whole numbers in {least} … 1000000")
    if len(set(task.tested)) < len(task.tested):
        raise ValueError(f"task.tested={task.tested!r} lists a length twice")


def examples(task: object, parts: Iterable[str]) -> None:
    """Checks the number of examples of each part. It is bounded because all examples are held in memory."""
    counts(task, [f"{part}_examples" for part in parts], most=10_000_000)


def seed(task: object) -> None:
    """Checks that the seed fits in 32 bits."""
    counts(task, ["seed"], least=0, most=2**32 - 1)


def unused(task: DataclassInstance, given: str, names: Iterable[str]) -> None:
    """Checks that fields which the field `given` makes irrelevant have their defaults.

    Args:
        task: The task.
        given: The name of the field that makes the others irrelevant.
        names: The names of the irrelevant fields.

    Raises:
        ValueError: If a field has another value. The message names the field.
    """
    defaults = {field.name: field.default for field in fields(task)}
    for name in names:
        if (value := getattr(task, name)) != defaults[name]:
            raise ValueError(f"task.{name}={value!r} has no effect with task.{given}={getattr(task, given)!r}")


def text(task: TextFields) -> None:
    """Checks the fields that tasks of text pairs have in common: units, smoothing and buckets."""
    units(task)
    smoothing(task)
    buckets(task)


def units(task: UnitsField) -> None:
    """Checks that `units` is a TokenizerSpec."""
    if not isinstance(task.units, TokenizerSpec):
        raise ValueError(f"task.units={task.units!r} must be a TokenizerSpec, for example attnlab.UNITS['bpe']")


def files(task: FileFields) -> None:
    """Checks that each part names a file.

    Raises:
        ValueError: If a part names none.
        DataError: If two parts name the same file.
    """
    names = paths(task)
    for part, name in names.items():
        if not name:
            raise ValueError(f"task.{part}={name!r} must be the path of a file")
    repeats.distinct(names)


def smoothing(task: SmoothingField) -> None:
    """Checks the fraction of label smoothing."""
    if isinstance(task.smoothing, bool) or not isinstance(task.smoothing, int | float) or not 0 <= task.smoothing < 1:
        raise ValueError(f"task.smoothing={task.smoothing!r} must be at least 0 and below 1")


def buckets(task: object) -> None:
    """Checks the number of batch lengths. It is bounded because a program is compiled for each length."""
    counts(task, ["buckets"], most=16)
