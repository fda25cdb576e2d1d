"""Sentences into classes: questions by the answer they ask for, opinions, one's own."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal

from attnlab.data import names, parallel, questions, repeats, sentences
from attnlab.data.example import Example, Parts
from attnlab.data.names import PARTS
from attnlab.data.parallel import Corpus, Limit
from attnlab.data.units import Units, Words
from attnlab.tasks import checks
from attnlab.tasks.base import Task
from attnlab.tasks.finetuning import Finetuning
from attnlab.tasks.labelling import Labelling

PUBLISHED: dict[str, Callable[[], Parts]] = {"trec": sentences.trec, "sst2": sentences.sst2}


@dataclass(frozen=True)
class Sorting(Task):
    """What tasks of sentences and classes have in common; `Trec` says what the fields mean."""

    teaching = ("masked", "share", "unlabelled", "units", "least", "buckets", "empty")

    masked: int = 0
    share: float = 0.15
    unlabelled: str = ""
    units: Units = Words(lower=True)
    least: int = 2
    buckets: int = 2
    empty: Literal["refuse", "skip"] = field(default="refuse", kw_only=True)

    def __post_init__(self):
        checks.counts(self, ["masked"], least=0)
        checks.counts(self, ["least"])
        checks.units(self)
        checks.buckets(self)
        names.check("task.empty", self.empty, parallel.EMPTY)
        if isinstance(self.share, bool) or not isinstance(self.share, int | float) or not 0 < self.share <= 1:
            raise ValueError(f"task.share={self.share!r} must be above 0 and at most 1")
        if self.unlabelled and not self.masked:
            raise ValueError(f"task.unlabelled={self.unlabelled!r} is read in masked steps alone: task.masked=0")

    def read(self, text: str) -> str:
        """What a person types, as sentences of these data are written."""
        return sentences.plain(text)

    def interpreter(self, vocabulary: dict[str, Any], where: str) -> Labelling:
        """A `Labelling` of the vocabulary."""
        return Labelling.restored(vocabulary, where, self.read)

    def with_test(self, problem: Any, file: str) -> Finetuning:
        """The problem with the sentences of a file, with classes or without, as its test; read as a person's input."""
        corpus = sentences.asked(file, problem.classes, *self.reading)
        examples = [example._replace(source=self.read(str(example.source))) for example in corpus.examples]
        found = problem.with_test(examples, file, corpus.lines)
        alone = () if any(example.targets for example in examples) else (f"{file}: read as sentences without classes",)
        found.notes = (*corpus.notes(), *alone, *found.notes)
        return found

    @property
    def reading(self) -> tuple[Limit, str]:
        """How a file is read: how long its lines may be, and its encoding."""
        return Limit(empty=self.empty), "utf-8"

    def _problem(self, parts: Parts, notes: tuple[str, ...] = (), limit: Limit = Limit()) -> Finetuning:
        more, told = _more(self.unlabelled, limit)
        found = Finetuning(
            parts, self.units, masked=self.masked, unlabelled=more, share=self.share, least=self.least,
            buckets=self.buckets, read=self.read,
        )  # fmt: skip
        found.notes = (*notes, *told, *found.notes)
        return found


@dataclass(frozen=True)
class Trec(Sorting):
    """Questions and the kind of answer they ask for, one of six (Li and Roth 2002); scored by accuracy.

    The kinds are ABBR, DESC, ENTY, HUM, LOC and NUM. A tenth of the 5,452 training questions is held out to validate
    with. In the first `masked` steps of a run (0: none) hidden words are filled in, in the others sentences are sorted,
    so that a run with them and one without make as many steps in all. `share` of a sentence's words are hidden.
    `unlabelled` is more text to fill in: a file of one's own, a sentence a line, UTF-8, or "trec" or "sst2" for the
    training sentences of that task. `units` are the symbols; words that occur fewer than `least` times are one, the
    unknown. `buckets`: into how many lengths batches are sorted. `empty` says what becomes of lines of your own files
    that have a class or a sentence alone: "refuse" or "skip".
    """

    def load(self) -> Finetuning:
        """Read the questions, fetched where they are not at hand."""
        return self._problem(sentences.trec())


@dataclass(frozen=True)
class Sst2(Sorting):
    """Sentences of film reviews, negative or positive (Socher et al. 2013): 6,920 to train with, without phrases.

    The fields are those of `trec`.
    """

    def load(self) -> Finetuning:
        """Read the reviews, fetched where they are not at hand."""
        return self._problem(sentences.sst2())


@dataclass(frozen=True)
class Questions(Sorting):
    """Questions by a small grammar, and which of six kinds of answer they ask for; nothing is fetched.

    All questions differ. The other fields are those of `trec`.
    """

    train_examples: int = 1000
    valid_examples: int = 200
    test_examples: int = 300
    seed: int = 0

    def __post_init__(self):
        super().__post_init__()
        checks.examples(self, PARTS)
        checks.seed(self)

    def load(self) -> Finetuning:
        """Draw the questions."""
        sizes = {part: getattr(self, f"{part}_examples") for part in PARTS}
        return self._problem(questions.draw(self.seed, sizes))


@dataclass(frozen=True)
class Sentences(Sorting):
    """One's own sentences: a line's first word is its class, the others are the sentence.

    A class of several words is ended by a tab, which then stands on every line.

    `train`, `valid` and `test` name a file each, of that `encoding` (utf-8 or latin-1), gzipped where its name ends in
    .gz. Lines of more than `longest` words (0: none is too long) are refused, cut or left out, as `longer` says:
    refuse, truncate or skip; those of `unlabelled`, too. The other fields are those of `trec`.
    """

    train: str = ""
    valid: str = ""
    test: str = ""
    encoding: str = "utf-8"
    longest: int = 0
    longer: str = "refuse"

    def __post_init__(self):
        super().__post_init__()
        names.check("task.encoding", self.encoding, sentences.ENCODINGS)
        checks.counts(self, ["longest"], least=0)
        names.check("task.longer", self.longer, parallel.LONGER)

    def read(self, text: str) -> str:
        """What a person types, without what surrounds it."""
        return text.strip()

    @property
    def reading(self) -> tuple[Limit, str]:
        """As the task's own files."""
        return Limit(self.longest, self.longer, self.empty), self.encoding

    def load(self) -> Finetuning:
        """Read one's files."""
        checks.files(self)
        if self.unlabelled not in ("", *PUBLISHED):
            repeats.distinct({name: getattr(self, name) for name in (*PARTS, "unlabelled")})
        limit, encoding = self.reading
        corpora = {part: sentences.corpus(getattr(self, part), limit, encoding) for part in PARTS}
        notes = [note for corpus in corpora.values() for note in corpus.notes()] + sentences.compared(corpora)
        return self._problem({part: corpus.examples for part, corpus in corpora.items()}, tuple(notes), limit)


def _more(name: str, limit: Limit) -> tuple[list[str], list[str]]:
    """The sentences of a file, or of a published set, and what is to be known of how they were read."""
    if not name:
        return [], []
    corpus: Corpus = _published(name, limit) if name in PUBLISHED else sentences.corpus(name, limit, classes=False)
    return [str(example.source) for example in corpus.examples], corpus.notes()


def _published(name: str, limit: Limit) -> Corpus:
    """The training sentences of a published set, as they are where the limit allows them."""
    found, kept, longer = [], [], []
    for number, example in enumerate(PUBLISHED[name]()["train"], start=1):
        words = str(example.source).split()
        if not (short := limit.met([words])):
            longer.append(number)
        if sides := limit.kept([words], f"{name}, line {number}"):
            found.append(example if short else Example(" ".join(sides[0]), ()))
            kept.append(number)
    return Corpus(name, found, kept, [], longer, limit)
