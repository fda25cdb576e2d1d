"""Long texts read byte by byte: of which class is a document, and are two of one class?"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

import numpy as np

from attnlab.data import documents, names, parallel, sentences
from attnlab.data.example import Parts
from attnlab.data.files import DataError
from attnlab.data.listed import utf8
from attnlab.data.names import PARTS
from attnlab.data.parallel import Limit
from attnlab.tasks import checks
from attnlab.tasks.base import Batch, Classes, Task, Tokens
from attnlab.tasks.stream import Stream

PUBLISHED = {"trec": sentences.trec, "sst2": sentences.sst2}
SCARCE = {"trec": "ABBR"}  # nine questions of the test
TEXTS = ("drawn", *PUBLISHED, "own")
BETWEEN = "|||"  # what stands between two documents that a person gives
SAME = ("different", "same")


@dataclass(frozen=True)
class Matches:
    """What a model that compares two documents must be built for: what each is, and how many answers there are."""

    document: Tokens
    classes: int


@dataclass(frozen=True)
class Documents(Task):
    """Documents of one class, byte by byte; scored by accuracy. All classes are as likely.

    A document joins sentences of its class, in random order, up to `shortest` … `longest` bytes, and is cut there; so
    short sentences make long texts (the Long Range Arena reads film reviews of 1,000 to 4,000 bytes, Tay et al. 2021).
    `text` says which sentences: "drawn", of made-up words, of which each of `kinds` classes has one half more often and
    the other less, by `tilt` nats (.3: a sentence tells which of two seven times in ten; both fields are of drawn ones
    alone); "trec" (but the class of abbreviations, of which there are too few) and "sst2", fetched; or "own", lines of
    your own in `train`, `valid` and `test`, UTF-8, with classes as `sentences` has them, and `empty` as there. No
    sentence is in two parts, and training draws documents anew for every batch.
    """

    teaching: ClassVar = ("empty",)

    text: str = "drawn"
    kinds: int = 2
    tilt: float = 0.3
    train: str = ""
    valid: str = ""
    test: str = ""
    shortest: int = 500
    longest: int = 1000
    valid_examples: int = 300
    test_examples: int = 1000
    seed: int = 0
    empty: Literal["refuse", "skip"] = field(default="refuse", kw_only=True)

    def __post_init__(self):
        names.check("task.text", self.text, TEXTS)
        names.check("task.empty", self.empty, parallel.EMPTY)
        checks.counts(self, ["kinds"], least=2, most=64)
        if not 0 < self.tilt <= 8:
            raise ValueError(f"task.tilt={self.tilt!r} must be above 0 and at most 8")
        checks.counts(self, ["shortest", "longest"], most=65_536)
        checks.examples(self, PARTS[1:])
        checks.seed(self)
        if self.shortest > self.longest:
            raise ValueError(f"task.shortest={self.shortest} must be at most task.longest={self.longest}")
        if self.text != "own" and (given := [part for part in PARTS if getattr(self, part)]):
            raise ValueError(
                f"task.{given[0]}={getattr(self, given[0])!r} is read where task.text=own, not {self.text}"
            )

    def load(self) -> Stream:
        """Read or draw the sentences. Raises DataError where there are too few for a document so long."""
        return Written(self)


@dataclass(frozen=True)
class DocumentPairs(Documents):
    """Two documents, byte by byte: are they of the same class? Half are. The fields are those of `documents`.

    No sentence is in both. `matcher` reads them (byte-level retrieval in the Long Range Arena, Tay et al. 2021, asks
    whether one of two papers cites the other).
    """

    def load(self) -> Stream:
        """Read or draw the sentences. Raises DataError where there are too few for two documents so long."""
        return Compared(self)


class Written(Stream):
    """Documents of sentences of one class: the problem of `Documents`."""

    each = 1  # documents an example

    def __init__(self, task: Documents):
        parts, notes = _parts(task)
        self._pools = documents.pools(parts)
        known = list(self._pools["train"])
        # Less than a sentence of a document's last is cut off.
        longest = max(len(one) for pool in self._pools.values() for each in pool.values() for one in each)
        documents.check(self._pools, self.each * (task.longest + longest), f"task.text={task.text}")
        self._known = known
        super().__init__(task, *self._asked(known, Tokens(documents.BYTES, task.longest)), self.each * task.longest)
        if task.text == "own":
            # A few documents of each part would not tell that a line of a file is another now.
            self.fingerprint = hashlib.sha256(repr((self.fingerprint, self._pools)).encode()).hexdigest()
        self.notes = (*notes, *self.notes)
        for part, examples in parts.items():
            if lost := len(examples) - sum(map(len, self._pools[part].values())):
                stand = f"{part}: {lost:,} of {len(examples):,} sentences stand there before, or in a later part"
                self.notes = (*self.notes, f"{stand}, and are left out")

    def _asked(self, known: list[str], document: Tokens) -> tuple[Any, Any]:
        """What the answers are called, and what a model is built for."""
        return known, Classes(document, len(known))

    def draw(self, random: np.random.Generator, size: int, part: str) -> Batch:
        """{"source" [N longest] int32, "keep" [N longest], "label" [N] int32}."""
        label = random.integers(len(self._known), size=size).astype(np.int32)
        found = [self._written(random, part, n, 1)[0] for n in label]
        return self._given(found) | {"label": label}

    def ask(self, text: str) -> Batch:
        """One document. Raises DataError where it is empty, or longer than the longest."""
        return self._given([self._read(text)]) | {"label": np.full(1, -1, np.int32)}

    def tokens(self, batch: Batch) -> dict[str, list[str]]:
        """The bytes of row 0: letters, and the others as hexadecimal numbers."""
        ids = np.asarray(batch["source"])[0][np.asarray(batch["keep"])[0]]
        shown = [chr(n - 1) if 32 < n - 1 < 127 else f"{n - 1:02x}" for n in ids.tolist()]
        return {"source": shown, "target": shown}

    def written(self, example: Batch) -> str:
        """The text of a document; bytes that are no UTF-8, as a cut may leave, are written "�"."""
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
            raise DataError(f"the document has {len(content):,} bytes, and the model reads up to {self.task.longest:,}")
        return content


class Compared(Written):
    """Two documents each, of one class or of two: the problem of `DocumentPairs`. Arrays have an axis [2] before T."""

    each = 2

    def _asked(self, known: list[str], document: Tokens) -> tuple[Any, Any]:
        return SAME, Matches(document, len(SAME))

    def draw(self, random: np.random.Generator, size: int, part: str) -> Batch:
        """{"source" [N 2 longest] int32, "keep" [N 2 longest], "label" [N] int32}."""
        label = random.integers(2, size=size).astype(np.int32)
        found = []
        for same in label:
            one, other = random.permutation(len(self._known))[:2].tolist()
            alone = lambda n: self._written(random, part, n, 1)
            found += self._written(random, part, one, 2) if same else [*alone(one), *alone(other)]
        return self._given(found) | {"label": label}

    def ask(self, text: str) -> Batch:
        """Two documents with ||| between. Raises DataError for another number of them, an empty or too long one."""
        both = text.split(BETWEEN)
        if len(both) != 2:
            raise DataError(f"the input holds {len(both)} documents: two are compared, with {BETWEEN} between them")
        return self._given([self._read(each) for each in both]) | {"label": np.full(1, -1, np.int32)}

    def tokens(self, batch: Batch) -> dict[str, list[str]]:
        """The bytes of row 0, the first document's and the second's."""
        pair = [{name: np.asarray(batch[name])[:1, n] for name in ("source", "keep")} for n in (0, 1)]
        first, second = (super(Compared, self).tokens(each)["source"] for each in pair)
        return {"source": first, "target": second}

    def written(self, example: Batch) -> str:
        """Both documents with ||| between them."""
        pair = [{name: np.asarray(example[name])[:, n] for name in ("source", "keep")} for n in (0, 1)]
        return BETWEEN.join(super(Compared, self).written(each) for each in pair)

    def _given(self, found: list[bytes]) -> Batch:
        return {name: x.reshape(-1, 2, self.task.longest) for name, x in super()._given(found).items()}


def _parts(task: Documents) -> tuple[Parts, list[str]]:
    """The sentences that a task names, and what is to be known of how they were read."""
    if task.text == "drawn":
        return documents.drawn(task.seed, task.kinds, task.tilt), []
    if task.text == "own":
        checks.files(task)
        corpora = {part: sentences.corpus(getattr(task, part), Limit(empty=task.empty)) for part in PARTS}
        sentences.compared(corpora)
        notes = [note for corpus in corpora.values() for note in corpus.notes()]
        return {part: corpus.examples for part, corpus in corpora.items()}, notes
    parts, scarce = PUBLISHED[task.text](), SCARCE.get(task.text)
    kept = {part: [each for each in examples if each.targets[0] != scarce] for part, examples in parts.items()}
    lost = sum(len(parts[part]) - len(kept[part]) for part in parts)
    return kept, [f"{lost:,} sentences of the class {scarce} are left out: they make no documents"] if lost else []
