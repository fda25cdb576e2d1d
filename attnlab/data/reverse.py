"""Sequences of integers to be read backwards: the data of the JoeyNMT tutorial, drawn here."""

from collections.abc import Iterator

import numpy as np

from attnlab.data.example import Example, Parts

PARTS = ("train", "valid", "test")


def read(seed: int, sizes: dict[str, int], longest: dict[str, int], symbols: int) -> Parts:
    """Examples of each part: integers below `symbols`, and the same from the end.

    Lengths are uniform in 1 … `longest` of the part. A pure function of its arguments; parts are drawn
    independently, so that the shortest sequences occur in several.
    """
    return {
        part: list(_draw(np.random.SeedSequence([seed, n]), sizes[part], longest[part], symbols))
        for n, part in enumerate(PARTS)
    }


def _draw(seed: np.random.SeedSequence, size: int, longest: int, symbols: int) -> Iterator[Example]:
    random = np.random.Generator(np.random.PCG64(seed))
    lengths = random.integers(1, longest, size, endpoint=True)
    integers = random.integers(symbols, size=lengths.sum())
    for sequence in np.split(integers, np.cumsum(lengths)[:-1]):
        source = tuple(map(str, sequence.tolist()))
        yield Example(source, (source[::-1],))
