"""From the letters of a word to its phones (grapheme to phoneme)."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from attnlab.data import cmudict, names, repeats, sigmorphon, words
from attnlab.data.example import Example, Parts
from attnlab.data.units import Characters, Words
from attnlab.data.words import own
from attnlab.tasks import checks
from attnlab.tasks.metrics import error_rates
from attnlab.tasks.pairing import PairTask, halves, left_out
from attnlab.tasks.transduction import Transduction


@dataclass(frozen=True)
class CMUdict(PairTask):
    """English in ARPAbet, 39 phones without stress: "hello" → "HH AH L OW"; scored by word and phoneme error.

    A word with several pronunciations is taught with each and right with any. `train`, `valid` and `test`
    name files of your own, in the dictionary's format, to stand for the parts of its split (that of
    cmusphinx/g2p-seq2seq, by the word's index). `smoothing` is the share of a target that all symbols have alike.
    """

    teaching = (*PairTask.teaching, "buckets", "smoothing")

    train: str = ""
    valid: str = ""
    test: str = ""
    buckets: int = 3
    smoothing: float = 0.0

    def __post_init__(self):
        super().__post_init__()
        checks.buckets(self)
        checks.smoothing(self)

    @property
    def how(self) -> dict[str, Any]:
        """The dictionary's words are in lower case."""
        return super().how | {"read": lambda word: word.strip().lower(), "smoothing": self.smoothing}

    def asked(self, file: str) -> tuple[list[Example], list[str], list[str]]:
        """The words of a file in the dictionary's format, or words alone."""
        return _asked(file, cmudict.rows, self.empty)

    def load(self) -> Transduction:
        """Read the dictionary, fetched where it is not at hand."""
        return _problem(self, cmudict.parts, cmudict.rows)


@dataclass(frozen=True)
class Sigmorphon(PairTask):
    """One of ten languages in IPA: "szavak" → "s ɒ v ɒ k"; scored by word and phoneme error.

    `language` is one of ady arm bul dut geo gre hin hun jpn lit. `train`, `valid` and `test` name files of
    your own, each row a word, a tab and phones, to stand for the parts of SIGMORPHON 2020, task 1. Where all three
    are given, `language` is not read: it may be any name, or "".
    """

    teaching = (*PairTask.teaching, "buckets", "smoothing")

    language: str = "hun"
    train: str = ""
    valid: str = ""
    test: str = ""
    buckets: int = 3
    smoothing: float = 0.0

    def __post_init__(self):
        super().__post_init__()
        checks.buckets(self)
        checks.smoothing(self)
        if not self.unread:
            names.check("task.language", self.language, sigmorphon.LANGUAGES)

    @property
    def unread(self) -> dict[str, Any]:
        """The language, where all files are your own."""
        return {"language": ""} if self.train and self.valid and self.test else {}

    @property
    def how(self) -> dict[str, Any]:
        """How targets are smoothed."""
        return super().how | {"smoothing": self.smoothing}

    def asked(self, file: str) -> tuple[list[Example], list[str], list[str]]:
        """The words of a file of words and phones, or words alone."""
        return _asked(file, sigmorphon.rows, self.empty)

    def load(self) -> Transduction:
        """Read the three parts, fetched where they are not at hand."""
        return _problem(self, lambda: sigmorphon.parts(self.language), sigmorphon.rows)


def _asked(file: str, rows: words.Rows, empty: str) -> tuple[list[Example], list[str], list[str]]:
    half = halves(empty)
    examples = words.asked(file, rows, half)
    return examples, [repr(str(example.source)) for example in examples], left_out({file: half})


def _problem(task: CMUdict | Sigmorphon, public: Callable[[], Parts], rows: words.Rows) -> Transduction:
    given = {part: path for part in ("train", "valid", "test") if (path := getattr(task, part))}
    repeats.distinct(given)
    # Nothing is fetched for a user who brings all three.
    parts = public() if len(given) < 3 else {}
    half = {path: halves(task.empty) for path in given.values()}
    parts = parts | {part: own(path, rows, half[path]) for part, path in given.items()}
    units = (Characters(), Words())
    found = Transduction(parts, units, _rates, "word_error_rate", False, task.buckets, **task.how)
    found.notes = (*left_out(half), *found.notes)
    return found


def _rates(answers: Sequence[str], references: Sequence[Sequence[str]]) -> dict[str, float]:
    """The error rates of phones with spaces between them."""
    split = [[reference.split() for reference in accepted] for accepted in references]
    return error_rates([answer.split() for answer in answers], split)
