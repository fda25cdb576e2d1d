"""A pattern of values, one per layer, for example of attention mechanisms."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from math import lcm
from typing import Generic, TypeVar

from attnlab import registry
from attnlab.documented import Documented, short_code

Value = TypeVar("Value")
MOST = 1024  # the largest number of layers


@dataclass(frozen=True)
class Pattern(Generic[Value], metaclass=Documented):
    """One value per layer, repeated over the layers: model.mechanism=gated-delta*3+softmax.

    This example is three layers of gated delta and one of softmax. A pattern can stand for a mechanism, a position
    encoding or an attention layer. Hybrid models are stacks with a pattern.

    Raises:
        ValueError: if there is no entry, or they are not a tuple.
    """

    entries: tuple[Value, ...]
    """The values of one period, first layer first."""

    def __post_init__(self):
        if not isinstance(self.entries, tuple) or not self.entries:
            raise ValueError(f"a pattern needs a tuple of at least one entry, got {self.entries!r}")

    def __str__(self):
        """Returns the pattern as on the command line, with constructor calls for values without a name of their own."""
        runs = [(name, len(list(run))) for name, run in groupby(map(_name, self.entries))]
        return "+".join(name if count == 1 else f"{name}*{count}" for name, count in runs)


def _name(value: object) -> str:
    """Returns the registered name of a value, or its constructor call if it is not registered as it is."""
    found = registry.find(value)
    return found[1] if found and registry.table(found[0])[found[1]] == value else short_code(value)


def period(value: Value | Pattern[Value]) -> tuple[Value, ...]:
    """Returns the values of one period: those of a pattern, or the value alone."""
    return value.entries if isinstance(value, Pattern) else (value,)


def by_layer(*values: object) -> list[tuple]:
    """Returns the entries of several values or patterns for each layer of their common period."""
    periods: Sequence[tuple] = [period(value) for value in values]
    return [tuple(each[n % len(each)] for each in periods) for n in range(lcm(*map(len, periods)))]


def read_pattern(text: str, place: str, field: str) -> Pattern:
    """Returns a pattern from text such as "gated-delta*3+softmax".

    Args:
        text: names of a registry, joined by "+". "*" and a number repeat a name.
        place: name of the registry.
        field: path of the field, for messages.

    Raises:
        ValueError: if a name is unknown or a count is not a whole number in 1 … 1024. The message names the field.
    """
    entries: list[object] = []
    for part in text.split("+"):
        name, _, count = part.strip().partition("*")
        if name.isdecimal() and count:
            raise ValueError(f"{field}={text!r}: the number stands behind the name: {count}*{name}")
        if "*" in part and not (count.isdecimal() and len(count) < 5 and 1 <= int(count) <= MOST):
            raise ValueError(f"{field}={text!r}: expected a whole number in 1 … {MOST} after {name}*, got {count!r}")
        entries += [registry.pick(registry.table(place), name, field)] * int(count or 1)
    return Pattern(tuple(entries))


PATTERNS: dict[str, Pattern] = registry.Registry("PATTERNS")
PATTERNS |= {"pattern": Pattern((None,))}
