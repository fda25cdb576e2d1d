"""Documents of bytes: sentences of one class, joined, so that what they are about is told all along."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from attnlab.data.io.files import DataError
from attnlab.data.rng import generator
from attnlab.data.text.example import Example, Parts

BYTES = 257  # ids: 0 is padding, then the bytes
WORDS, LETTERS = 64, ("bdfgklmnprstvz", "aeiou")
SENTENCES, SHORT, LONG = 400, 4, 12  # drawn of every class and part; how many words they have

Pool = dict[str, list[bytes]]  # sentences by class


def pools(parts: Parts) -> dict[str, Pool]:
    """The sentences of each part by class; all parts list the classes of "train", sorted, and no others.

    A sentence stands once in all, in the last part that has it: what is examined is not trained on, and two documents
    share none. Raises DataError for a class that "train" lacks.
    """
    classes = sorted({str(example.targets[0]) for example in parts["train"]})
    found: dict[str, Pool] = {part: {name: [] for name in classes} for part in parts}
    taken: set[str] = set()
    for part, examples in reversed(parts.items()):
        for example in examples:
            if (label := str(example.targets[0])) not in found[part]:
                raise DataError(f"the {part} part has a sentence of the class {label!r}, which train has none of")
            if (sentence := str(example.source)) not in taken:
                found[part][label].append(sentence.encode())
                taken.add(sentence)
    return found


def drawn(seed: int, classes: int, tilt: float) -> Parts:
    """Sentences of made-up words, told apart by how often each word is used: {"train", "valid", "test"}.

    Of `WORDS` words each class prefers a half of its own, by `tilt` nats either way: who knows them tells a document of
    n words of one class from another's with probability near Φ(tilt √(n/2)), as long as the tilt is small.
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
    """Raise DataError, naming part and class, where one has no sentences, or they make fewer than `least` bytes."""
    for part, pool in pools.items():
        for name, sentences in pool.items():
            if not sentences:
                raise DataError(
                    f"{path}: the {part} part has no sentence of the class {name!r}, or none that no later part has"
                )
            if (size := sum(len(sentence) + 1 for sentence in sentences)) < least:
                raise DataError(
                    f"{path}: the {part} part has {size:,} bytes of sentences of the class {name!r}, and {least:,} are "
                    "needed: ask for shorter documents"
                )


def written(random: np.random.Generator, sentences: list[bytes], lengths: list[int]) -> Iterator[bytes]:
    """Documents of so many bytes, of sentences in random order, a space between; no sentence comes twice, in all."""
    order = iter(random.permutation(len(sentences)))
    for length in lengths:
        document = b""
        while len(document) < length:
            document += (b" " if document else b"") + sentences[next(order)]
        yield document[:length]


def padded(documents: list[bytes], width: int) -> tuple[np.ndarray, np.ndarray]:
    """Ids [N width] int32, a byte and one, zero behind; and which are no padding [N width]."""
    lengths = np.array([len(document) for document in documents])
    keep = np.arange(width) < lengths[:, None]
    ids = np.zeros((len(documents), width), np.int32)
    ids[keep] = np.frombuffer(b"".join(documents), np.uint8).astype(np.int32) + 1
    return ids, keep


def _words(random: np.random.Generator) -> np.ndarray:
    """Different words of one to three syllables."""
    found: dict[str, None] = {}
    while len(found) < WORDS:
        syllables = random.integers(1, 4)
        letters = [random.choice(list(kind), size=syllables) for kind in LETTERS]
        found["".join(np.stack(letters, axis=1).ravel().tolist())] = None
    return np.array(list(found))


def _names(classes: int) -> list[str]:
    return [f"kind {n}" for n in range(1, classes + 1)]
