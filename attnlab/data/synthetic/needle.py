"""A needle in a haystack: a sentence that gives a number a value, somewhere in other text, and a question about it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from attnlab.data.text import documents

END = "."  # the last word of a sentence
PHRASE = ("the", "number", "of", "{key}", "is", "{value}", END)
ASKED = len(PHRASE) - 2  # the words of the phrase that the question repeats, so that the value is next
SHORTEST = len(PHRASE) + ASKED  # words of a needle and the question


def sentences(seed: int) -> dict[str, list[list[str]]]:
    """Draws sentences of made-up words for each part, some words being frequent and others rare.

    The words are those of `attnlab.data.text.documents.drawn`.
    """
    parts = documents.drawn(seed, classes=1, tilt=1.0)
    return {part: [str(example.source).split() for example in examples] for part, examples in parts.items()}


def hay(random: np.random.Generator, sentences: Sequence[np.ndarray], length: int) -> np.ndarray:
    """Returns random sentences, one after another, of `length` words. The last sentence is cut, and ends all the same.

    Args:
      random: the generator.
      sentences: the ids of the words of each sentence. All end in the same id.
      length: number of words.
    """
    end, words, count = sentences[0][-1], [], 0
    while count < length:
        words.append(sentences[int(random.integers(len(sentences)))])
        count += len(words[-1])
    found = np.concatenate([*words, np.zeros(0, np.int32)])[:length].astype(np.int32)
    found[-1:] = end
    return found


def hide(hay: np.ndarray, end: int, needles: np.ndarray, depths: np.ndarray) -> np.ndarray:
    """Returns the text with needles in it, each before the sentence that stands at its depth.

    Args:
      hay: the ids of the text [T].
      end: the id of the last word of every sentence.
      needles: the ids of the needles [N P].
      depths: where each needle belongs [N], from 0, the beginning of the text, to 1, its end.
    """
    begins = np.concatenate([[0], 1 + np.flatnonzero(hay == end)])
    places = begins[np.searchsorted(begins, depths * len(hay), side="right") - 1]
    pieces, last = [], 0
    for n in np.argsort(places, kind="stable"):
        pieces += [hay[last : places[n]], needles[n]]
        last = places[n]
    return np.concatenate([*pieces, hay[last:]])
