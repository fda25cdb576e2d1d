"""Long texts read byte by byte: the class of a document, or whether two documents have the same class."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

import numpy as np

from attnlab.data import names
from attnlab.data.io.files import DataError
from attnlab.data.names import PARTS
from attnlab.data.text import documents, sentences
from attnlab.data.text.corpus import EMPTY, Limit
from attnlab.data.text.example import Parts
from attnlab.data.text.listed import utf8
from attnlab.tasks.base import checks
from attnlab.tasks.base.parts import paths
from attnlab.tasks.base.shapes import Classes, Tokens
from attnlab.tasks.base.stream import GeneratedData
from attnlab.tasks.base.task import Task
from attnlab.tasks.base.text_interface import Batch

PUBLISHED = {"trec": sentences.trec, "sst2": sentences.sst2}
SCARCE = {"trec": "ABBR"}  # classes with too few sentences: the test has nine of it
TEXTS = ("drawn", *PUBLISHED, "own")
BETWEEN = "|||"  # separates two documents in an input
SAME = ("different", "same")


@dataclass(frozen=True)
class PairOfDocuments:
    """The shape of the task: what a model that compares two documents must be built for."""

    document: Tokens
    """The shape of each document."""
    classes: int
    """The number of answers."""


@dataclass(frozen=True)
class Documents(Task):
    """The class of a document, read byte by byte. Scored by accuracy. All classes are equally likely.

    A document joins sentences of its class in random order, up to a length drawn from `shortest` … `longest` bytes, and
    is cut there. Short sentences thus make long texts. (The Long Range Arena reads film reviews of 1,000 to 4,000
    bytes, Tay et al. 2021.) No sentence occurs in two parts. Training documents are generated anew for every batch.
    """

    training_only_fields: ClassVar = ("empty",)

    text: str = "drawn"
    """The source of the sentences: "drawn", "trec", "sst2" or "own".

    "drawn" are sentences of made-up words. "trec" and "sst2" are downloaded; "trec" is used without the class of
    abbreviations, which has too few sentences. "own" are lines of your own files.
    """
    kinds: int = 2
    """The number of classes of "drawn" sentences."""
    tilt: float = 0.3
    """How strongly the classes of "drawn" sentences differ, in nats, above 0 and at most 8.

    Each class uses one half of the words more often and the other half less often, by `tilt`. With 0.3, a sentence
    identifies one of two classes correctly seven times in ten.
    """
    train: str = ""
    """The path of your training file in UTF-8 (only with `text="own"`).

    Lines have the format of the task `sentences`.
    """
    valid: str = ""
    """The path of your validation file."""
    test: str = ""
    """The path of your test file."""
    shortest: int = 500
    """The smallest length of a document in bytes."""
    longest: int = 1000
    """The largest length of a document in bytes."""
    valid_examples: int = 300
    """The number of validation documents."""
    test_examples: int = 1000
    """The number of test documents."""
    seed: int = 0
    """The seed of the data, in 0 … 2³²−1."""
    empty: Literal["refuse", "skip"] = field(default="refuse", kw_only=True)
    """Whether to "refuse" or "skip" lines of your own files that lack a class or a sentence."""

    def __post_init__(self):
        names.check("task.text", self.text, TEXTS)
        names.check("task.empty", self.empty, EMPTY)
        checks.counts(self, ["kinds"], least=2, most=64)
        if not 0 < self.tilt <= 8:
            raise ValueError(f"task.tilt={self.tilt!r} must be above 0 and at most 8")
        checks.counts(self, ["shortest", "longest"], most=65_536)
        checks.examples(self, PARTS[1:])
        checks.seed(self)
        if self.shortest > self.longest:
            raise ValueError(f"task.shortest={self.shortest} must be at most task.longest={self.longest}")
        if self.text != "own" and (given := {part: path for part, path in paths(self).items() if path}):
            part, path = next(iter(given.items()))
            raise ValueError(f"task.{part}={path!r} requires task.text=own, got task.text={self.text}")

    def load(self) -> GeneratedData:
        """Reads or generates the sentences.

        Raises:
            DataError: If there are too few sentences for a document of this length.
        """
        return TextClassification(self)


@dataclass(frozen=True)
class DocumentPairs(Documents):
    """Two documents, read byte by byte: are they of the same class? Scored by accuracy.

    Half of the pairs are of the same class. No sentence occurs in both documents. The fields are those of `documents`.
    The model `pair-classifier` reads them. (Byte-level retrieval in the Long Range Arena, Tay et al. 2021, asks whether
    one of two papers cites the other.)
    """

    def load(self) -> GeneratedData:
        """Reads or generates the sentences.

        Raises:
            DataError: If there are too few sentences for two documents of this length.
        """
        return PairClassification(self)


class TextClassification(GeneratedData[Documents]):
    """The data of `Documents`: documents that consist of sentences of one class."""

    each = 1  # documents in an example

    def __init__(self, task: Documents):
        parts, notes = _parts(task)
        self._pools = documents.pools(parts)
        known = list(self._pools["train"])
        # A document needs at most one sentence more than its length: only part of its last sentence is cut off.
        longest = max(len(one) for pool in self._pools.values() for each in pool.values() for one in each)
        documents.check(self._pools, self.each * (task.longest + longest), f"task.text={task.text}")
        self._known = known
        super().__init__(
            task, *self._classes_and_shape(known, Tokens(documents.BYTES, task.longest)), self.each * task.longest
        )
        if task.text == "own":
            # The fingerprint of the generator covers a few documents only and would miss a changed line of a file.
            self.fingerprint = hashlib.sha256(repr((self.fingerprint, self._pools)).encode()).hexdigest()
        self.notes = (*notes, *self.notes)
        for part, examples in parts.items():
            if lost := len(examples) - sum(map(len, self._pools[part].values())):
                share = f"{part}: {lost:,} of {len(examples):,} sentences"
                reason = "because they occur earlier in this part or in a later part"
                self.notes = (*self.notes, f"{share} are left out, {reason}")

    def _classes_and_shape(self, known: list[str], document: Tokens) -> tuple[Sequence[str], Any]:
        """Returns the names of the classes, and the shape of the task."""
        return known, Classes(document, len(known))

    def draw(self, random: np.random.Generator, size: int, part: str) -> Batch:
        """Returns {"source" [N longest] int32, "keep" [N longest], "label" [N] int32}."""
        label = random.integers(len(self._known), size=size).astype(np.int32)
        found = [self._written(random, part, n, 1)[0] for n in label]
        return self._given(found) | {"label": label}

    def encode_prompt(self, text: str) -> Batch:
        """Returns one document.

        Raises:
            DataError: If it is empty, or longer than `longest` bytes.
        """
        return self._given([self._read(text)]) | {"label": np.full(1, -1, np.int32)}

    def tokens(self, batch: Batch) -> dict[str, list[str]]:
        """Returns the bytes of row 0. Printable ASCII is shown as characters, other bytes as hexadecimal numbers."""
        ids = np.asarray(batch["source"])[0][np.asarray(batch["keep"])[0]]
        shown = [chr(n - 1) if 32 < n - 1 < 127 else f"{n - 1:02x}" for n in ids.tolist()]
        return {"source": shown, "target": shown}

    def written(self, example: Batch) -> str:
        """Returns the text of a document. Bytes that are not UTF-8, for example after a cut, become "�"."""
        ids, keep = (np.asarray(example[name])[0] for name in ("source", "keep"))
        return bytes((ids[keep] - 1).tolist()).decode("utf-8", errors="replace")

    def _written(self, random: np.random.Generator, part: str, label: int, count: int) -> list[bytes]:
        lengths = random.integers(self.task.shortest, self.task.longest, size=count, endpoint=True)
        return list(documents.written(random, self._pools[part][self._known[label]], lengths.tolist()))

    def _given(self, found: list[bytes]) -> Batch:
        ids, keep = documents.padded(found, self.task.longest)
        return {"source": ids, "keep": keep}

    def _read(self, text: str) -> bytes:
        content = utf8(text.strip())
        if not content:
            raise DataError(f"the document {text!r} is empty")
        if len(content) > self.task.longest:
            longest = f"{self.task.longest:,}"
            raise DataError(f"the document has {len(content):,} bytes, but the model reads at most {longest}")
        return content


class PairClassification(TextClassification):
    """The data of `DocumentPairs`: two documents in each example. Arrays have an axis [2] before T."""

    each = 2
    maps = None

    def _classes_and_shape(self, known: list[str], document: Tokens) -> tuple[Sequence[str], PairOfDocuments]:
        return SAME, PairOfDocuments(document, len(SAME))

    def draw(self, random: np.random.Generator, size: int, part: str) -> Batch:
        """Returns {"source" [N 2 longest] int32, "keep" [N 2 longest], "label" [N] int32}."""
        label = random.integers(2, size=size).astype(np.int32)
        found = []
        for same in label:
            one, other = random.permutation(len(self._known))[:2].tolist()
            alone = lambda n: self._written(random, part, n, 1)
            found += self._written(random, part, one, 2) if same else [*alone(one), *alone(other)]
        return self._given(found) | {"label": label}

    def encode_prompt(self, text: str) -> Batch:
        """Returns two documents, which are separated by ||| in the text.

        Raises:
            DataError: If there are not exactly two documents, or if one is empty or too long.
        """
        both = text.split(BETWEEN)
        if len(both) != 2:
            raise DataError(f"expected two documents separated by {BETWEEN}, got {len(both)}")
        return self._given([self._read(each) for each in both]) | {"label": np.full(1, -1, np.int32)}

    def tokens(self, batch: Batch) -> dict[str, list[str]]:
        """Returns the bytes of row 0: the first document as "source" and the second as "target"."""
        pair = [{name: np.asarray(batch[name])[:1, n] for name in ("source", "keep")} for n in (0, 1)]
        first, second = (super(PairClassification, self).tokens(each)["source"] for each in pair)
        return {"source": first, "target": second}

    def written(self, example: Batch) -> str:
        """Returns both documents with ||| between them."""
        pair = [{name: np.asarray(example[name])[:, n] for name in ("source", "keep")} for n in (0, 1)]
        return BETWEEN.join(super(PairClassification, self).written(each) for each in pair)

    def _given(self, found: list[bytes]) -> Batch:
        return {name: x.reshape(-1, 2, self.task.longest) for name, x in super()._given(found).items()}


def _parts(task: Documents) -> tuple[Parts, list[str]]:
    """Returns the sentences of the task, and messages about how they were read."""
    if task.text == "drawn":
        return documents.drawn(task.seed, task.kinds, task.tilt), []
    if task.text == "own":
        checks.files(task)
        corpora = {part: sentences.corpus(path, Limit(empty=task.empty)) for part, path in paths(task).items()}
        sentences.compared(corpora)
        notes = [note for corpus in corpora.values() for note in corpus.notes()]
        return {part: corpus.examples for part, corpus in corpora.items()}, notes
    parts, scarce = PUBLISHED[task.text](), SCARCE.get(task.text)
    kept = {part: [each for each in examples if each.targets[0] != scarce] for part, examples in parts.items()}
    lost = sum(len(parts[part]) - len(kept[part]) for part in parts)
    note = f"{lost:,} sentences of the class {scarce} are left out, because they are too few for documents"
    return kept, [note] if lost else []
