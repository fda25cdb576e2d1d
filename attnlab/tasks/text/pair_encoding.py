"""The ids of text pairs, and the symbols in them that never occur in training."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from attnlab.data.io.files import DataError
from attnlab.data.text.example import Example, Parts, Symbols
from attnlab.data.text.marks import marked
from attnlab.data.text.units import Tokenizer, TokenizerSpec
from attnlab.data.text.vocabulary import END
from attnlab.tasks.text.pairing import written

# What messages say of symbols that never occur in training, for each side.
LEFT_OUT = (
    "source symbols that do not occur in training; these are left out of the input",
    "target symbols that do not occur in training; no answer can have them",
)


def encode_pairs(
    tokenizers: tuple[Tokenizer, Tokenizer], examples: Iterable[Example], source_marks: str
) -> tuple[list[list[int]], list[list[int]], np.ndarray]:
    """Encodes examples without the symbols that never occur in training.

    Returns:
        The marked ids of sources, the ids of first references, and how many examples of each side had such symbols,
        [2].
    """
    sources, targets, odd = [], [], np.zeros(2, int)
    for example in examples:
        # An example of a user's test file may have no target.
        sides = zip(tokenizers, (example.source, example.targets[0] if example.targets else ""), strict=True)
        (source, target), whole = zip(*(_known(tokenizer, side) for tokenizer, side in sides), strict=True)
        sources.append(marked(source, source_marks))
        targets.append([*target, END] if example.targets else [])
        odd += np.logical_not(whole)
    return sources, targets, odd


def unknown_symbols(
    path: str,
    places: Sequence[str],
    tokenizers: tuple[Tokenizer, Tokenizer],
    examples: Sequence[Example],
    most: int = 5,
) -> Iterable[str]:
    """Yields a message about the examples of a file with symbols that never occur in training, for each side."""
    for side in (0, 1):
        texts = [(example.source, *example.targets[:1])[side : side + 1] for example in examples]
        pairs = zip(places, texts, strict=True)
        odd = [place for place, text in pairs if text and not _known(tokenizers[side], text[0])[1]]
        if odd:
            shown = ", ".join(odd[:most]) + (", …" if len(odd) > most else "")
            yield f"{path}: {unknown_count(side, len(odd), len(examples))}: {shown}"


def unknown_count(side: int, count: int, examples: int) -> str:
    """Returns the message that so many examples have symbols that never occur in training.

    Args:
        side: 0 for sources, 1 for targets.
        count: The number of examples with such symbols.
        examples: The number of all examples.
    """
    return f"{count} of {examples} examples {'has' if count == 1 else 'have'} {LEFT_OUT[side]}"


def _known(tokenizer: Tokenizer, symbols: Symbols) -> tuple[list[int], bool]:
    """Returns the ids of a side without symbols that never occur in training, and whether these are all of the side."""
    try:
        return tokenizer.encode(written(symbols)), True
    except DataError:
        return tokenizer.encode(written(symbols), known=True), False


def fit_tokenizers(parts: Parts, units: tuple[TokenizerSpec, ...]) -> tuple[Tokenizer, Tokenizer]:
    """Returns the tokenizers of both sides, learned from the training part only."""
    sources = [written(example.source) for example in parts["train"]]
    targets = [written(target) for example in parts["train"] for target in example.targets]
    if len(units) == 1:
        both = units[0].fit([*sources, *targets])
        return both, both
    return units[0].fit(sources), units[1].fit(targets)
