"""Sequences of integers to be read backwards, as in the JoeyNMT tutorial, or to be copied; drawn here."""

from collections.abc import Iterator

import numpy as np

from attnlab.data.names import PARTS
from attnlab.data.rng import generator
from attnlab.data.text.example import Example, Parts


def read(seed: int, sizes: dict[str, int], longest: dict[str, int], symbols: int, backwards: bool = True) -> Parts:
    """Examples of each part: integers below `symbols`, and the same from the end, or as they stand.

    An examination's examples are grouped as no longer than what is taught, and longer. Lengths are uniform in
    1 … `longest` of the part. A pure function of its arguments; parts are drawn independently, so that the shortest
    sequences occur in several.
    """
    parts, taught = {}, longest["train"]
    for n, part in enumerate(PARTS):
        drawn = _draw(generator(seed, n), sizes[part], longest[part], symbols)
        parts[part] = [Example(source, (source[::-1] if backwards else source,)) for source in drawn]
    for part in ("valid", "test"):
        if longest[part] > taught:
            parts[part] = [each._replace(group=_group(len(each.source), taught)) for each in parts[part]]
    return parts


def _group(length: int, taught: int) -> str:
    return f"1-{taught}" if length <= taught else f"{taught + 1}+"


def _draw(random: np.random.Generator, size: int, longest: int, symbols: int) -> Iterator[tuple[str, ...]]:
    lengths = random.integers(1, longest, size, endpoint=True)
    integers = random.integers(symbols, size=lengths.sum())
    for sequence in np.split(integers, np.cumsum(lengths)[:-1]):
        yield tuple(map(str, sequence.tolist()))
