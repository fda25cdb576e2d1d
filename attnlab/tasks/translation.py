"""From one language to another."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from attnlab.data import moses, multi30k, names, parallel
from attnlab.data.example import Example
from attnlab.data.parallel import Limit
from attnlab.data.units import Bpe, Characters, Units
from attnlab.tasks import checks
from attnlab.tasks.headline import AUTO, METRICS, headline
from attnlab.tasks.metrics import bleu, bleu_tokenised_lower, by_length, chrf
from attnlab.tasks.pairing import PairTask, from_corpus
from attnlab.tasks.transduction import Transduction

EDGES = (10, 15, 20)  # the words of a source, by which scores are told apart


@dataclass(frozen=True)
class Multi30k(PairTask):
    """Captions of photographs, between English and German: 29,000 pairs; scored by BLEU, also by the source's length.

    `tokenised` reads the data set's own lower-cased, tokenised text, on which published numbers stand, and scores
    BLEU-4 of its words (`bleu_tokenised_lower`); else text as it was written, and sacreBLEU's `bleu`; `chrf` beside
    both. `units` are learned from both languages together where `joint`, else from each. `smoothing` is the share of a
    target that all symbols have alike. `buckets`: into how many lengths batches are sorted.
    """

    teaching = (*PairTask.teaching, "units", "joint", "smoothing", "buckets")

    source: str = "de"
    target: str = "en"
    tokenised: bool = True
    units: Units = Bpe()
    joint: bool = True
    smoothing: float = 0.1
    buckets: int = 10

    def __post_init__(self):
        super().__post_init__()
        for field in ("source", "target"):
            names.check(f"task.{field}", getattr(self, field), multi30k.LANGUAGES)
        if self.source == self.target:
            raise ValueError(f"task.source={self.source!r} and task.target={self.target!r} must differ")
        checks.text(self)

    @property
    def how(self) -> dict[str, Any]:
        """What is tokenised is read as the data set's own text was made, and written as a person would."""
        own = {"read": lambda text: moses.tokenised(text, self.source), "write": moses.written}
        more = (own if self.tokenised else {}) | {"smoothing": self.smoothing, "likelihood": True}
        return super().how | more

    def asked(self, file: str) -> tuple[list[Example], list[str], list[str]]:
        """Captions of a file; where the data set's own text is tokenised, their references are tokenised too."""
        examples, places, notes = super().asked(file)
        if self.tokenised:
            told = lambda text: moses.tokenised(str(text), self.target)
            examples = [example._replace(targets=tuple(map(told, example.targets))) for example in examples]
        return _grouped(examples), places, notes

    def load(self) -> Transduction:
        """Read the captions, fetched where they are not at hand."""
        parts = multi30k.parts(self.source, self.target, self.tokenised)
        parts |= {part: _grouped(parts[part]) for part in ("valid", "test")}
        first = bleu_tokenised_lower if self.tokenised else bleu
        measure = lambda answers, references: first(answers, references) | chrf(answers, references)
        units = (self.units,) if self.joint else (self.units, self.units)
        return Transduction(parts, units, measure, first.__name__, True, self.buckets, **self.how)


@dataclass(frozen=True)
class Parallel(PairTask):
    """Your own pairs of texts, in any script; scored by exact match, word errors, word edits, chrF or BLEU.

    `train`, `valid` and `test` name a file each, of two columns with a tab between them, or two files with a comma
    between their names, which answer each other line by line. Where `grouped`, each line has a third column, its
    group, such as a language: scores are reported for each besides. A source that has several targets in `valid` or
    `test` is one example there, with several references; in `train` each line is a pair of its own. `target_units` are
    those of targets where they are not those of sources. `metric` is the headline: bleu, bleu_zh, bleu_characters,
    bleu_tokenised_lower, chrf, word_edit_rate, word_error_rate or exact_match; auto chooses from what the references
    look like (`attnlab.tasks.headline`). Pairs with a side of more than `longest` characters (0: none is too long)
    are refused, cut or left out, as `longer` says: refuse, truncate or skip. The rest as in `multi30k`.
    """

    teaching = (*PairTask.teaching, "units", "target_units", "joint", "smoothing", "buckets")

    train: str = ""
    valid: str = ""
    test: str = ""
    grouped: bool = False
    units: Units = Characters()
    target_units: Units | None = None
    joint: bool = False
    metric: str = AUTO
    longest: int = 0
    longer: str = "refuse"
    smoothing: float = 0.0
    buckets: int = 6

    def __post_init__(self):
        super().__post_init__()
        checks.text(self)
        checks.counts(self, ["longest"], least=0)
        if self.target_units is not None and not isinstance(self.target_units, Units):
            raise ValueError(f"task.target_units={self.target_units!r} must be units of text, or none")
        if self.joint and self.target_units is not None:
            raise ValueError("task.joint=True learns one vocabulary for both sides: leave task.target_units out")
        names.check("task.longer", self.longer, parallel.LONGER)
        names.check("task.metric", self.metric, METRICS)

    @property
    def how(self) -> dict[str, Any]:
        """How targets are smoothed; references are asked for how likely they are."""
        return super().how | {"smoothing": self.smoothing, "likelihood": True}

    def asked(self, file: str) -> tuple[list[Example], list[str], list[str]]:
        """The pairs of a file in the format of the task's own, or its sources alone."""
        return from_corpus(parallel.asked(file, Limit(self.longest, self.longer, self.empty), self.grouped))

    def load(self) -> Transduction:
        """Read one's files."""
        checks.files(self)
        limit = Limit(self.longest, self.longer, self.empty)
        corpora = {
            part: parallel.pairs(getattr(self, part), limit, self.grouped) for part in ("train", "valid", "test")
        }
        for part in ("valid", "test"):
            corpora[part] = corpora[part].merged()
        parts = {part: corpus.examples for part, corpus in corpora.items()}
        target = self.target_units or self.units
        units, chosen = (self.units,) if self.joint else (self.units, target), headline(parts, self.metric)
        found = Transduction(parts, units, chosen.measure, chosen.metric, chosen.higher, self.buckets, **self.how)
        told = [note for corpus in corpora.values() for note in corpus.notes()]
        found.notes = (*chosen.notes(self.metric, target), *told, *found.notes)
        return found


def _grouped(examples: list[Example]) -> list[Example]:
    """Each under the number of words in its source."""
    members = by_length([len(str(example.source).split()) for example in examples], EDGES)
    groups = {n: f"{name} words" for name, found in members.items() for n in found}
    return [example._replace(group=groups[n]) for n, example in enumerate(examples)]
