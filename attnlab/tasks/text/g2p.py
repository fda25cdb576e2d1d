"""Grapheme to phoneme: from the letters of a word to its phones."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from attnlab.data import names
from attnlab.data.text import cmudict, sigmorphon, words
from attnlab.data.text.example import Example, Parts
from attnlab.data.text.units import Characters, Words
from attnlab.data.text.words import read_user_file
from attnlab.tasks.base import checks
from attnlab.tasks.base.metrics import PHONEME_ERROR_RATE, WORD_ERROR_RATE, error_rates
from attnlab.tasks.text.pair_task import PairTask, halves, left_out, user_parts
from attnlab.tasks.text.pairing import PairOptions
from attnlab.tasks.text.transduction import PairData

LETTERS_TO_PHONES = (Characters(), Words())


@dataclass(frozen=True)
class CMUdict(PairTask):
    """English words in ARPAbet: "hello" → "HH AH L OW". Scored by word and phoneme error rate.

    The alphabet has 39 phones without stress. A word with several pronunciations is trained with each of them, and an
    answer is correct if it equals any of them. The split is that of cmusphinx/g2p-seq2seq, by the index of the word.
    """

    training_only_fields = (*PairTask.training_only_fields, "buckets", "smoothing")
    fixed_units = LETTERS_TO_PHONES

    train: str = ""
    """The path of your own training file in the dictionary's format. "" uses the dictionary's training part.

    Words are lower-cased. Stress marks of ARPAbet's vowels are removed, and other digits are kept.
    """
    valid: str = ""
    """The path of your own validation file. "" uses the dictionary's validation part."""
    test: str = ""
    """The path of your own test file. "" uses the dictionary's test part."""
    buckets: int = 3
    """The largest number of different batch lengths. Examples are grouped by length to reduce padding."""
    smoothing: float = 0.0
    """The fraction of label smoothing: the part of a target that is uniform over all symbols, at least 0 and below 1.
    """

    def __post_init__(self):
        super().__post_init__()
        checks.buckets(self)
        checks.smoothing(self)

    @property
    def how(self) -> PairOptions:
        """Inputs are lower-cased, as all words are when they are read."""
        return {**super().how, "read": lambda word: word.strip().lower(), "smoothing": self.smoothing}

    def read_for_scoring(self, file: str) -> tuple[list[Example], list[str], list[str]]:
        """Returns the examples of a file in the dictionary's format, or of a file of words only."""
        examples, places, notes = _read_for_scoring(file, cmudict.rows, self.empty)
        return [example._replace(source=str(example.source).lower()) for example in examples], places, notes

    def load(self) -> PairData:
        """Reads the dictionary. It is downloaded if it is not available locally."""
        return _problem(self, cmudict.parts, cmudict.rows)


@dataclass(frozen=True)
class Sigmorphon(PairTask):
    """Words of one of ten languages in IPA: "szavak" → "s ɒ v ɒ k". Scored by word and phoneme error rate.

    The data are those of SIGMORPHON 2020, task 1.
    """

    training_only_fields = (*PairTask.training_only_fields, "buckets", "smoothing")
    fixed_units = LETTERS_TO_PHONES

    language: str = "hun"
    """The language: ady, arm, bul, dut, geo, gre, hin, hun, jpn or lit.

    It is not read if all three parts are your own files. It may then be any name, or "".
    """
    train: str = ""
    """The path of your own training file, each line a word, a tab and its phones.

    "" uses the published training part.
    """
    valid: str = ""
    """The path of your own validation file. "" uses the published validation part."""
    test: str = ""
    """The path of your own test file. "" uses the published test part."""
    buckets: int = 3
    """The largest number of different batch lengths. Examples are grouped by length to reduce padding."""
    smoothing: float = 0.0
    """The fraction of label smoothing: the part of a target that is uniform over all symbols, at least 0 and below 1.
    """

    def __post_init__(self):
        super().__post_init__()
        checks.buckets(self)
        checks.smoothing(self)
        if not self.unread:
            names.check("task.language", self.language, sigmorphon.LANGUAGES)

    @property
    def unread(self) -> dict[str, object]:
        """The language, if all files are your own."""
        return {"language": ""} if self.train and self.valid and self.test else {}

    @property
    def how(self) -> PairOptions:
        """Targets are smoothed."""
        return {**super().how, "smoothing": self.smoothing}

    def read_for_scoring(self, file: str) -> tuple[list[Example], list[str], list[str]]:
        """Returns the examples of a file of words and phones, or of a file of words only."""
        return _read_for_scoring(file, sigmorphon.rows, self.empty)

    def load(self) -> PairData:
        """Reads the three parts. They are downloaded if they are not available locally."""
        return _problem(self, lambda: sigmorphon.parts(self.language), sigmorphon.rows)


def _read_for_scoring(file: str, rows: words.Rows, empty: str) -> tuple[list[Example], list[str], list[str]]:
    half = halves(empty)
    examples = words.read_for_scoring(file, rows, half)
    return examples, [repr(str(example.source)) for example in examples], left_out({file: half})


def _problem(task: CMUdict | Sigmorphon, public: Callable[[], Parts], rows: words.Rows) -> PairData:
    parts, notes = user_parts(task, public, lambda path, half: read_user_file(path, rows, half))
    found = PairData(parts, task.fixed_units, _rates, (WORD_ERROR_RATE, PHONEME_ERROR_RATE), task.buckets, **task.how)
    found.notes = (*notes, *found.notes)
    return found


def _rates(answers: Sequence[str], references: Sequence[Sequence[str]]) -> dict[str, float]:
    """Computes the error rates of phones, which are separated by spaces."""
    split = [[reference.split() for reference in accepted] for accepted in references]
    return error_rates([answer.split() for answer in answers], split)
