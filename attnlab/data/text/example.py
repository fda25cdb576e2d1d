"""What every reader and generator of sequence pairs answers."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from attnlab.data.rng import generator

Symbols = Sequence[str]  # a string is the sequence of its characters


class Example(NamedTuple):
    """One input, every answer that counts as right, and the group (a language) it is reported under."""

    source: Symbols
    targets: tuple[Symbols, ...]
    group: str = ""


Parts = dict[str, list[Example]]  # "train", "valid", "test"


def shuffled(examples: Iterable[Example]) -> list[Example]:
    """The same examples in one fixed order, so that any prefix of an alphabetical file is a fair sample."""
    examples = list(examples)
    order = generator(0).permutation(len(examples))
    return [examples[i] for i in order]
