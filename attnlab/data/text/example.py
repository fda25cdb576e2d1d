"""The record that every reader and generator of sequence pairs returns."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from attnlab.data.rng import generator

Symbols = Sequence[str]  # a string is a sequence of characters


class Example(NamedTuple):
    """One example: an input and all outputs that count as correct."""

    source: Symbols
    """The input."""
    targets: tuple[Symbols, ...]
    """All correct outputs; empty if none is known."""
    group: str = ""
    """The group under which the example is reported, for example its language."""


Parts = dict[str, list[Example]]  # by "train", "valid" and "test"


def shuffled(examples: Iterable[Example]) -> list[Example]:
    """Returns the examples in one fixed random order, so that any prefix of an alphabetical file is a fair sample."""
    examples = list(examples)
    order = generator(0).permutation(len(examples))
    return [examples[i] for i in order]
