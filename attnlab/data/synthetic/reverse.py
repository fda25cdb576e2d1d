"""Random sequences of integers to reverse, as in the JoeyNMT tutorial, or to copy."""

from collections.abc import Iterator

import numpy as np

from attnlab.data.names import PARTS
from attnlab.data.rng import generator
from attnlab.data.text.example import Example, Parts


def read(seed: int, sizes: dict[str, int], longest: dict[str, int], symbols: int, backwards: bool = True) -> Parts:
    """Draws the examples of each part. A pure function of its arguments.

    If a part has longer sequences than the training part, its examples are grouped into those of lengths that occur in
    training, and longer ones. Parts are drawn independently, so the shortest sequences occur in several of them.

    Args:
      seed: seed of the examples.
      sizes: the number of examples of each part.
      longest: the largest length of each part. Lengths are uniform in 1 … longest.
      symbols: integers are below this.
      backwards: whether the target is the reversed sequence, or the sequence itself.
    """
    parts, training = {}, longest["train"]
    for n, part in enumerate(PARTS):
        drawn = _draw(generator(seed, n), sizes[part], longest[part], symbols)
        parts[part] = [Example(source, (source[::-1] if backwards else source,)) for source in drawn]
    for part in ("valid", "test"):
        if longest[part] > training:
            parts[part] = [each._replace(group=_group(len(each.source), training)) for each in parts[part]]
    return parts


def _group(length: int, training: int) -> str:
    """Returns the name of the group of a length."""
    return f"1-{training}" if length <= training else f"{training + 1}+"


def _draw(random: np.random.Generator, size: int, longest: int, symbols: int) -> Iterator[tuple[str, ...]]:
    """Yields random sequences of symbols."""
    lengths = random.integers(1, longest, size, endpoint=True)
    integers = random.integers(symbols, size=lengths.sum())
    for sequence in np.split(integers, np.cumsum(lengths)[:-1]):
        yield tuple(map(str, sequence.tolist()))
