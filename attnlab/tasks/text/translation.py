"""Translation, and other tasks on your own text pairs."""

from __future__ import annotations

from dataclasses import dataclass

from attnlab.data import names
from attnlab.data.text import moses, multi30k, parallel
from attnlab.data.text.corpus import LONGER, Limit
from attnlab.data.text.example import Example
from attnlab.data.text.units import Bpe, Characters, TokenizerSpec
from attnlab.tasks.base import checks
from attnlab.tasks.base.metrics import BLEU, BLEU_TOKENISED_LOWER, CHRF, bleu, bleu_tokenised_lower, by_length, chrf
from attnlab.tasks.base.parts import paths
from attnlab.tasks.base.primary_metric import AUTO, METRICS, primary_metric
from attnlab.tasks.text.pair_task import PairTask, from_corpus
from attnlab.tasks.text.pairing import PairOptions
from attnlab.tasks.text.transduction import PairData

EDGES = (10, 15, 20)  # edges, in words of the source, of the groups for which scores are reported


@dataclass(frozen=True)
class Multi30k(PairTask):
    """Captions of photographs, in English and German. Scored by BLEU, also for each range of source lengths.

    There are 29,000 training pairs.
    """

    training_only_fields = (*PairTask.training_only_fields, "units", "joint", "smoothing", "buckets")

    source: str = "de"
    """The source language, "de" or "en"."""
    target: str = "en"
    """The target language, different from `source`."""
    tokenised: bool = True
    """Whether to use the data set's lower-cased and tokenised text.

    Published numbers refer to this text. It is scored by BLEU-4 of its words (`bleu_tokenised_lower`). If False, the
    original text is used and scored by sacreBLEU's `bleu`. Both also report `chrf`.
    """
    units: TokenizerSpec = Bpe()
    """The units (tokenizer) of both languages."""
    joint: bool = True
    """Whether both languages share one vocabulary. If False, each language has its own."""
    smoothing: float = 0.1
    """The fraction of label smoothing: the part of a target that is uniform over all symbols, at least 0 and below 1.
    """
    buckets: int = 10
    """The largest number of different batch lengths. Examples are grouped by length to reduce padding."""

    def __post_init__(self):
        super().__post_init__()
        names.check("task.source", self.source, multi30k.LANGUAGES)
        names.check("task.target", self.target, multi30k.LANGUAGES)
        if self.source == self.target:
            raise ValueError(f"task.source={self.source!r} and task.target={self.target!r} must differ")
        checks.text(self)

    @property
    def how(self) -> PairOptions:
        """With `tokenised`, inputs are tokenised like the data set, and answers are detokenised."""
        common: PairOptions = {**super().how, "smoothing": self.smoothing, "likelihood": True}
        if not self.tokenised:
            return common
        return {**common, "read": lambda text: moses.tokenised(text, self.source), "write": moses.written}

    def read_for_scoring(self, file: str) -> tuple[list[Example], list[str], list[str]]:
        """Returns the captions of a file. With `tokenised`, their references are tokenised too."""
        examples, places, notes = super().read_for_scoring(file)
        if self.tokenised:
            tokenise = lambda text: moses.tokenised(str(text), self.target)
            examples = [example._replace(targets=tuple(map(tokenise, example.targets))) for example in examples]
        return _grouped(examples), places, notes

    def load(self) -> PairData:
        """Reads the captions. They are downloaded if they are not available locally."""
        parts = multi30k.parts(self.source, self.target, self.tokenised)
        parts |= {part: _grouped(parts[part]) for part in ("valid", "test")}
        first, metric = (bleu_tokenised_lower, BLEU_TOKENISED_LOWER) if self.tokenised else (bleu, BLEU)
        measure = lambda answers, references: first(answers, references) | chrf(answers, references)
        units = (self.units,) if self.joint else (self.units, self.units)
        return PairData(parts, units, measure, (metric, CHRF), self.buckets, **self.how)


@dataclass(frozen=True)
class Parallel(PairTask):
    """Your own pairs of texts, in any script. Scored by exact match, word errors, word edits, chrF or BLEU.

    A source with several targets in `valid` or `test` is one example with several references. In `train`, each line is
    a pair of its own.
    """

    training_only_fields = (*PairTask.training_only_fields, "units", "target_units", "joint", "smoothing", "buckets")

    train: str = ""
    """The training file, or two files whose names are separated by a comma.

    One file has two columns separated by a tab. Of two files, each line of the first belongs to the same line of the
    second.
    """
    valid: str = ""
    """The validation file, or two files whose names are separated by a comma."""
    test: str = ""
    """The test file, or two files whose names are separated by a comma."""
    grouped: bool = False
    """Whether each line has a third column with its group, for example a language.

    Scores are then also reported for each group.
    """
    units: TokenizerSpec = Characters()
    """The units (tokenizer) of sources."""
    target_units: TokenizerSpec | None = None
    """The units (tokenizer) of targets. None means `units`."""
    joint: bool = False
    """Whether sources and targets share one vocabulary. This excludes `target_units`."""
    metric: str = AUTO
    """The primary metric.

    It is "bleu", "bleu_zh", "bleu_characters", "bleu_tokenised_lower", "chrf", "word_edit_rate", "word_error_rate" or
    "exact_match". "auto" chooses by what the references look like (`attnlab.tasks.base.primary_metric`).
    """
    longest: int = 0
    """The largest number of characters of a source and of a target. 0 means no limit."""
    longer: str = "refuse"
    """What happens to pairs with a longer side: "refuse", "truncate" or "skip"."""
    smoothing: float = 0.0
    """The fraction of label smoothing: the part of a target that is uniform over all symbols, at least 0 and below 1.
    """
    buckets: int = 6
    """The largest number of different batch lengths. Examples are grouped by length to reduce padding."""

    def __post_init__(self):
        super().__post_init__()
        checks.text(self)
        checks.counts(self, ["longest"], least=0)
        if self.target_units is not None and not isinstance(self.target_units, TokenizerSpec):
            raise ValueError(
                f"task.target_units={self.target_units!r} must be a TokenizerSpec, for example "
                "attnlab.UNITS['bpe'], or none"
            )
        if self.joint and self.target_units is not None:
            raise ValueError("task.joint=True learns one vocabulary for both sides; remove task.target_units")
        names.check("task.longer", self.longer, LONGER)
        names.check("task.metric", self.metric, METRICS)

    @property
    def how(self) -> PairOptions:
        """Targets are smoothed, and the likelihood of references is reported."""
        return {**super().how, "smoothing": self.smoothing, "likelihood": True}

    def read_for_scoring(self, file: str) -> tuple[list[Example], list[str], list[str]]:
        """Returns the pairs of a file in the format of the task's own files, or of a file of sources only."""
        return from_corpus(parallel.read_for_scoring(file, Limit(self.longest, self.longer, self.empty), self.grouped))

    def load(self) -> PairData:
        """Reads your files."""
        checks.files(self)
        limit = Limit(self.longest, self.longer, self.empty)
        corpora = {part: parallel.pairs(path, limit, self.grouped) for part, path in paths(self).items()}
        for part in ("valid", "test"):
            corpora[part] = corpora[part].merged()
        parts = {part: corpus.examples for part, corpus in corpora.items()}
        target = self.target_units or self.units
        units, chosen = (self.units,) if self.joint else (self.units, target), primary_metric(parts, self.metric)
        found = PairData(parts, units, chosen.measure, chosen.metrics, self.buckets, **self.how)
        reading = [note for corpus in corpora.values() for note in corpus.notes()]
        found.notes = (*chosen.notes(self.metric, target), *reading, *found.notes)
        return found


def _grouped(examples: list[Example]) -> list[Example]:
    """Returns the examples grouped by the number of words in their source."""
    members = by_length([len(str(example.source).split()) for example in examples], EDGES)
    groups = {n: f"{name} words" for name, found in members.items() for n in found}
    return [example._replace(group=groups[n]) for n, example in enumerate(examples)]
