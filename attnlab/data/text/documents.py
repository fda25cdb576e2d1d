"""Documents of bytes: sentences of one class joined, so that evidence for the class is spread over the document."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from attnlab.data.io.files import DataError
from attnlab.data.rng import generator
from attnlab.data.text.example import Example, Parts

BYTES = 257  # number of ids: 0 is padding, n + 1 is byte n
WORDS, LETTERS = 64, ("bdfgklmnprstvz", "aeiou")
SENTENCES, SHORT, LONG = 400, 4, 12  # sentences drawn for each class and part; their least and largest number of words

Pool = dict[str, list[bytes]]  # sentences by class


def pools(parts: Parts) -> dict[str, Pool]:
    """Groups the sentences of each part by class.

    Every part lists the classes of "train", sorted. Each sentence is kept once over all parts, in the last part that
    has it. No sentence is therefore in both training and evaluation.

    Args:
      parts: the sentences of each part; the first target is the class.

    Returns:
      The pool of each part, by its name.

    Raises:
      DataError: if a part has a class that "train" lacks.
    """
    classes = sorted({str(example.targets[0]) for example in parts["train"]})
    found: dict[str, Pool] = {part: {name: [] for name in classes} for part in parts}
    taken: set[str] = set()
    for part, examples in reversed(parts.items()):
        for example in examples:
            if (label := str(example.targets[0])) not in found[part]:
                raise DataError(f"the {part} part has a sentence of class {label!r}, which does not occur in train")
            if (sentence := str(example.source)) not in taken:
                found[part][label].append(sentence.encode())
                taken.add(sentence)
    return found


def drawn(seed: int, classes: int, tilt: float) -> Parts:
    """Draws sentences of made-up words, whose classes differ only in how often each word is used.

    Each class prefers half of the `WORDS` words: their log frequency is higher by `tilt`, that of the others lower by
    `tilt`. For a small tilt, an ideal observer distinguishes documents of n words of two classes with probability of
    about Φ(tilt √(n/2)).

    Args:
      seed: seed of the words, the preferences and the sentences.
      classes: number of classes.
      tilt: strength of the preference, in nats.

    Returns:
      The parts "train", "valid" and "test", each with `SENTENCES` sentences of each class.
    """
    random = generator(seed, 0)
    words = _words(random)
    prefer = random.permuted(np.tile(np.repeat([-tilt, tilt], WORDS // 2), (classes, 1)), axis=1)
    shares = np.exp(prefer) / np.exp(prefer).sum(axis=1, keepdims=True)
    parts: Parts = {}
    for n, part in enumerate(("train", "valid", "test"), start=1):
        random = generator(seed, n)
        parts[part] = [
            Example(
                " ".join(words[random.choice(WORDS, size=random.integers(SHORT, LONG + 1), p=share)]) + " .", (name,)
            )
            for name, share in zip(_names(classes), shares, strict=True)
            for _ in range(SENTENCES)
        ]
    return parts


def check(pools: Mapping[str, Pool], least: int, path: str) -> None:
    """Checks that every class of every part has enough sentences.

    Args:
      pools: the pools of each part.
      least: the least number of bytes of the sentences of a class.
      path: the file they come from, used in messages.

    Raises:
      DataError: if a class of a part has no sentences or fewer bytes. The message names both.
    """
    for part, pool in pools.items():
        for name, sentences in pool.items():
            if not sentences:
                raise DataError(
                    f"{path}: the {part} part has no sentence of class {name!r} that is not in a later part"
                )
            if (size := sum(len(sentence) + 1 for sentence in sentences)) < least:
                raise DataError(
                    f"{path}: the {part} part has {size:,} bytes of sentences of class {name!r}, but {least:,} are "
                    "needed; use shorter documents"
                )


def written(random: np.random.Generator, sentences: list[bytes], lengths: list[int]) -> Iterator[bytes]:
    """Yields documents made of sentences in random order, joined by spaces. No sentence is used twice.

    Args:
      random: the generator for the order.
      sentences: the sentences to use.
      lengths: the number of bytes of each document. The last sentence of a document is cut there.
    """
    order = iter(random.permutation(len(sentences)))
    for length in lengths:
        document = b""
        while len(document) < length:
            document += (b" " if document else b"") + sentences[next(order)]
        yield document[:length]


def padded(documents: list[bytes], width: int) -> tuple[np.ndarray, np.ndarray]:
    """Converts documents to ids, byte + 1, with zeros after each document.

    Returns:
      The ids [N width] int32, and a boolean array [N width] that is False at padding.
    """
    lengths = np.array([len(document) for document in documents])
    keep = np.arange(width) < lengths[:, None]
    ids = np.zeros((len(documents), width), np.int32)
    ids[keep] = np.frombuffer(b"".join(documents), np.uint8).astype(np.int32) + 1
    return ids, keep


def _words(random: np.random.Generator) -> np.ndarray:
    """Returns `WORDS` different words of one to three syllables."""
    found: dict[str, None] = {}
    while len(found) < WORDS:
        syllables = random.integers(1, 4)
        letters = [random.choice(list(kind), size=syllables) for kind in LETTERS]
        found["".join(np.stack(letters, axis=1).ravel().tolist())] = None
    return np.array(list(found))


def _names(classes: int) -> list[str]:
    """Returns the names of the classes."""
    return [f"kind {n}" for n in range(1, classes + 1)]
