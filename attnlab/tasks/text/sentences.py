"""Sentence classification: TREC, SST-2, generated questions and your own sentences."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal

from attnlab.data import names, repeats
from attnlab.data.names import PARTS
from attnlab.data.synthetic import questions
from attnlab.data.text import sentences
from attnlab.data.text.corpus import EMPTY, LONGER, Corpus, Limit
from attnlab.data.text.example import Example, Parts
from attnlab.data.text.units import TokenizerSpec, Words
from attnlab.tasks.base import checks
from attnlab.tasks.base.parts import paths, sizes
from attnlab.tasks.base.task import Task
from attnlab.tasks.text.finetuning import FinetuningData
from attnlab.tasks.text.labelling import SentenceInterface

PUBLISHED: dict[str, Callable[[], Parts]] = {"trec": sentences.trec, "sst2": sentences.sst2}


@dataclass(frozen=True)
class SentenceTask(Task):
    """The base class of tasks of sentence classification.

    A run can begin with pretraining on masked words. Pretraining steps count as steps of the run, so that runs with and
    without them have the same number of steps.
    """

    training_only_fields = ("masked", "share", "unlabelled", "units", "least", "buckets", "empty")

    masked: int = 0
    """The number of first steps that predict masked words. The other steps classify. 0 means no pretraining."""
    share: float = 0.15
    """The fraction of the words of a sentence that is masked, above 0 and at most 1."""
    unlabelled: str = ""
    """Further sentences for pretraining, which requires `masked`.

    It is the path of a file in UTF-8 with one sentence on each line, or "trec" or "sst2" for the training sentences of
    that task.
    """
    units: TokenizerSpec = Words(lower=True)
    """The units (tokenizer) of a sentence."""
    least: int = 2
    """Words that occur fewer times in training are replaced by the unknown word. Other units than words ignore it."""
    buckets: int = 2
    """The largest number of different batch lengths. Examples are grouped by length to reduce padding."""
    empty: Literal["refuse", "skip"] = field(default="refuse", kw_only=True)
    """Whether to "refuse" or "skip" lines of your own files that lack a class or a sentence."""

    def __post_init__(self):
        checks.counts(self, ["masked"], least=0)
        checks.counts(self, ["least"])
        checks.units(self)
        checks.buckets(self)
        names.check("task.empty", self.empty, EMPTY)
        if isinstance(self.share, bool) or not isinstance(self.share, int | float) or not 0 < self.share <= 1:
            raise ValueError(f"task.share={self.share!r} must be above 0 and at most 1")
        if self.unlabelled and not self.masked:
            raise ValueError(f"task.unlabelled={self.unlabelled!r} requires task.masked above 0, got task.masked=0")

    def read(self, text: str) -> str:
        """Returns an input of a user in the form of the data's sentences."""
        return sentences.plain(text)

    def text_interface(self, vocabulary: dict[str, object], where: str) -> SentenceInterface:
        """Returns the `SentenceInterface` of the vocabulary."""
        return SentenceInterface.restored(vocabulary, where, self.read)

    def with_test(self, problem: FinetuningData, file: str) -> FinetuningData:
        """Returns the data with the sentences of a file, with or without classes, as the test part.

        The sentences are read like an input of a user.
        """
        corpus = sentences.read_for_scoring(file, problem.classes, *self.reading)
        examples = [example._replace(source=self.read(str(example.source))) for example in corpus.examples]
        found = problem.with_test(examples, file, corpus.lines)
        unlabelled = not any(example.targets for example in examples)
        unknown = (f"{file}: the lines are read as sentences without classes",) if unlabelled else ()
        found.notes = (*corpus.notes(), *unknown, *found.notes)
        return found

    @property
    def reading(self) -> tuple[Limit, str]:
        """How a file is read: the limit on its lines, and its encoding."""
        return Limit(empty=self.empty), "utf-8"

    def _problem(self, parts: Parts, notes: tuple[str, ...] = (), limit: Limit = Limit()) -> FinetuningData:
        more, reading = _more(self.unlabelled, limit)
        found = FinetuningData(
            parts, self.units, masked=self.masked, unlabelled=more, share=self.share, least=self.least,
            buckets=self.buckets, read=self.read,
        )  # fmt: skip
        found.notes = (*notes, *reading, *found.notes)
        return found


@dataclass(frozen=True)
class Trec(SentenceTask):
    """Questions and the kind of answer they ask for, one of six (Li and Roth 2002). Scored by accuracy.

    The kinds are ABBR, DESC, ENTY, HUM, LOC and NUM. A tenth of the 5,452 training questions is used for validation.
    """

    def load(self) -> FinetuningData:
        """Reads the questions. They are downloaded if they are not available locally."""
        return self._problem(sentences.trec())


@dataclass(frozen=True)
class Sst2(SentenceTask):
    """Sentences of film reviews, negative or positive (Socher et al. 2013). Scored by accuracy.

    There are 6,920 training sentences. Phrases of sentences are not used. The fields are those of `trec`.
    """

    def load(self) -> FinetuningData:
        """Reads the reviews. They are downloaded if they are not available locally."""
        return self._problem(sentences.sst2())


@dataclass(frozen=True)
class Questions(SentenceTask):
    """Questions generated by a small grammar, and the kind of answer they ask for, one of six. Scored by accuracy.

    Nothing is downloaded, and all questions differ. The other fields are those of `trec`.
    """

    train_examples: int = 1000
    """The number of training questions."""
    valid_examples: int = 200
    """The number of validation questions."""
    test_examples: int = 300
    """The number of test questions."""
    seed: int = 0
    """The seed of the data, in 0 … 2³²−1."""

    def __post_init__(self):
        super().__post_init__()
        checks.examples(self, PARTS)
        checks.seed(self)

    def load(self) -> FinetuningData:
        """Generates the questions."""
        return self._problem(questions.draw(self.seed, sizes(self)))


@dataclass(frozen=True)
class Sentences(SentenceTask):
    """Your own sentences, each with a class. Scored by accuracy.

    The first word of a line is its class and the rest is the sentence. If a class has several words, a tab ends it, and
    every line must then have the tab. The other fields are those of `trec`.
    """

    train: str = ""
    """The path of the training file. A file whose name ends in .gz is decompressed with gzip."""
    valid: str = ""
    """The path of the validation file."""
    test: str = ""
    """The path of the test file."""
    encoding: str = "utf-8"
    """The encoding of the files, "utf-8" or "latin-1"."""
    longest: int = 0
    """The largest number of words of a sentence, also in `unlabelled`. 0 means no limit."""
    longer: str = "refuse"
    """What happens to longer sentences: "refuse", "truncate" or "skip"."""

    def __post_init__(self):
        super().__post_init__()
        names.check("task.encoding", self.encoding, sentences.ENCODINGS)
        checks.counts(self, ["longest"], least=0)
        names.check("task.longer", self.longer, LONGER)

    def read(self, text: str) -> str:
        """Returns an input of a user without surrounding white space."""
        return text.strip()

    @property
    def reading(self) -> tuple[Limit, str]:
        """How a file is read: as the task's own files."""
        return Limit(self.longest, self.longer, self.empty), self.encoding

    def load(self) -> FinetuningData:
        """Reads your files."""
        checks.files(self)
        if self.unlabelled not in ("", *PUBLISHED):
            repeats.distinct(paths(self) | {"unlabelled": self.unlabelled})
        limit, encoding = self.reading
        corpora = {part: sentences.corpus(path, limit, encoding) for part, path in paths(self).items()}
        notes = [note for corpus in corpora.values() for note in corpus.notes()] + sentences.compared(corpora)
        return self._problem({part: corpus.examples for part, corpus in corpora.items()}, tuple(notes), limit)


def _more(name: str, limit: Limit) -> tuple[list[str], list[str]]:
    """Returns the sentences of a file or of a published data set, and messages about how they were read."""
    if not name:
        return [], []
    corpus: Corpus = _published(name, limit) if name in PUBLISHED else sentences.corpus(name, limit, classes=False)
    return [str(example.source) for example in corpus.examples], corpus.notes()


def _published(name: str, limit: Limit) -> Corpus:
    """Returns the training sentences of a published data set. The limit is applied to them."""
    found, kept, longer = [], [], []
    for number, example in enumerate(PUBLISHED[name]()["train"], start=1):
        words = str(example.source).split()
        if not (short := limit.met([words])):
            longer.append(number)
        if sides := limit.kept([words], f"{name}, line {number}"):
            found.append(example if short else Example(" ".join(sides[0]), ()))
            kept.append(number)
    return Corpus(name, found, kept, [], longer, limit)
