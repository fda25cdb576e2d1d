"""A pattern of mechanisms, one per layer."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import groupby

from attnlab import registry
from attnlab.documented import Documented
from attnlab.mechanisms.base import Mechanism


@dataclass(frozen=True)
class Pattern(metaclass=Documented):
    """Mechanisms of successive layers, repeated until all layers have one. Hybrid models are stacks with a pattern.

    On the command line, `model.mechanism=gated-delta*3+softmax` is three layers of gated delta and one of softmax.

    Raises:
        ValueError: if there is no mechanism.
        TypeError: if an entry is not a mechanism.
    """

    mechanisms: tuple[Mechanism, ...]
    """The mechanisms of one period, first layer first."""

    def __post_init__(self):
        if not self.mechanisms:
            raise ValueError("a pattern needs at least one mechanism")
        for mechanism in self.mechanisms:
            if not isinstance(mechanism, Mechanism):
                raise TypeError(f"expected mechanisms, for example MECHANISMS['softmax'], got {mechanism!r}")

    def __str__(self):
        """Returns the pattern as it is written on the command line."""
        runs = [(name, len(list(run))) for name, run in groupby(map(_name, self.mechanisms))]
        return "+".join(name if count == 1 else f"{name}*{count}" for name, count in runs)


def _name(mechanism: Mechanism) -> str:
    """Returns the registered name of a mechanism, or its constructor call if it is not registered as it is."""
    found = registry.find(mechanism)
    return found[1] if found and registry.table(found[0])[found[1]] == mechanism else str(mechanism)


def period(mechanism: Mechanism | Pattern) -> tuple[Mechanism, ...]:
    """Returns the mechanisms of one period: those of a pattern, or the mechanism alone."""
    return mechanism.mechanisms if isinstance(mechanism, Pattern) else (mechanism,)


def read_pattern(text: str, field: str) -> Pattern:
    """Returns a pattern from text such as "gated-delta*3+softmax".

    Args:
        text: names of mechanisms, joined by "+". "*" and a number repeat a name.
        field: path of the field, for messages.

    Raises:
        ValueError: if a name is unknown or a count is not a whole number of 1 or more. The message names the field.
    """
    mechanisms: list[Mechanism] = []
    known = registry.table("MECHANISMS")
    for part in text.split("+"):
        name, _, count = part.partition("*")
        if "*" in part and not (count.isdecimal() and int(count) >= 1):
            raise ValueError(f"{field}={text!r}: expected a whole number of 1 or more after {name}*, got {count!r}")
        mechanisms += [registry.pick(known, name, field)] * int(count or 1)
    return Pattern(tuple(mechanisms))
