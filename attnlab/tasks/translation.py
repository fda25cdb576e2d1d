"""From one language to another."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from attnlab.data import moses, multi30k, names, parallel
from attnlab.data.example import Example, Parts
from attnlab.data.parallel import Limit
from attnlab.data.units import Bpe, Characters, Units
from attnlab.tasks import checks
from attnlab.tasks.metrics import bleu, bleu_tokenised_lower, by_length, chrf, exact_match, word_edits
from attnlab.tasks.pairing import PairTask
from attnlab.tasks.transduction import Measure, Transduction

EDGES = (10, 15, 20)  # the words of a source, by which scores are told apart


@dataclass(frozen=True)
class Multi30k(PairTask):
    """Captions of photographs, between English and German: 29,000 pairs; scored by BLEU, also by the source's length.

    `tokenised` reads the data set's own lower-cased, tokenised text, on which published numbers stand, and scores
    BLEU-4 of its words (`bleu_tokenised_lower`); else text as it was written, and sacreBLEU's `bleu`; `chrf` beside
    both. `units` are learned from both languages together where `joint`, else from each. `smoothing` is the share of a
    target that all symbols have alike. `buckets`: into how many lengths batches are sorted.
    """

    teaching = ("units", "joint", "smoothing", "buckets")

    source: str = "de"
    target: str = "en"
    tokenised: bool = True
    units: Units = Bpe()
    joint: bool = True
    smoothing: float = 0.1
    buckets: int = 10

    def __post_init__(self):
        for field in ("source", "target"):
            names.check(f"task.{field}", getattr(self, field), multi30k.LANGUAGES)
        if self.source == self.target:
            raise ValueError(f"task.source={self.source!r} and task.target={self.target!r} must differ")
        checks.text(self)

    @property
    def how(self) -> dict[str, Any]:
        """What is tokenised is read as the data set's own text was made, and written as a person would."""
        own = {"read": lambda text: moses.tokenised(text, self.source), "write": moses.written}
        return (own if self.tokenised else {}) | {"smoothing": self.smoothing, "likelihood": True}

    def load(self) -> Transduction:
        """Read the captions, fetched where they are not at hand."""
        parts = multi30k.parts(self.source, self.target, self.tokenised)
        parts |= {part: _grouped(parts[part]) for part in ("valid", "test")}
        first = bleu_tokenised_lower if self.tokenised else bleu
        measure = lambda answers, references: first(answers, references) | chrf(answers, references)
        return _problem(self, parts, measure, first.__name__)


@dataclass(frozen=True)
class Parallel(PairTask):
    """One's own pairs of texts, in any script; scored by BLEU, chrF, word edits and exact match.

    `train`, `valid` and `test` name a file each, of two columns with a tab between them, or two files with a comma
    between their names, which answer each other line by line. Where `grouped`, each line has a third column, its
    group, such as a language: scores are told for each besides. `target_units` are those of targets where they are not
    those of sources. `metric` is the headline: bleu, bleu_tokenised_lower,
    chrf, word_edit_rate or exact_match. Pairs with a side of more than `longest` characters (0: none is too long)
    are refused, cut or left out, as `longer` says: refuse, truncate or skip. The rest as in `multi30k`.
    """

    teaching = ("units", "target_units", "joint", "smoothing", "buckets")

    train: str = ""
    valid: str = ""
    test: str = ""
    grouped: bool = False
    units: Units = Characters()
    target_units: Units | None = None
    joint: bool = False
    metric: str = "bleu"
    longest: int = 0
    longer: str = "refuse"
    smoothing: float = 0.0
    buckets: int = 6

    def __post_init__(self):
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
        return {"smoothing": self.smoothing, "likelihood": True}

    def load(self) -> Transduction:
        """Read one's files."""
        checks.files(self)
        limit = Limit(self.longest, self.longer)
        corpora = {
            part: parallel.pairs(getattr(self, part), limit, self.grouped) for part in ("train", "valid", "test")
        }
        parts = {part: corpus.examples for part, corpus in corpora.items()}
        found = _problem(self, parts, _all, self.metric, self.target_units)
        found.notes = (*(note for corpus in corpora.values() for note in corpus.notes()), *found.notes)
        return found


METRICS = ("bleu", "bleu_tokenised_lower", "chrf", "word_edit_rate", "exact_match")


def _all(answers: Sequence[str], references: Sequence[Sequence[str]]) -> dict[str, float]:
    measures = (bleu, bleu_tokenised_lower, chrf, word_edits, exact_match)
    return {name: value for measure in measures for name, value in measure(answers, references).items()}


def _problem(
    task: Multi30k | Parallel, parts: Parts, measure: Measure, metric: str, target: Units | None = None
) -> Transduction:
    units = (task.units,) if task.joint else (task.units, target or task.units)
    return Transduction(parts, units, measure, metric, metric != "word_edit_rate", task.buckets, **task.how)


def _grouped(examples: list[Example]) -> list[Example]:
    """Each under the number of words in its source."""
    members = by_length([len(str(example.source).split()) for example in examples], EDGES)
    groups = {n: f"{name} words" for name, found in members.items() for n in found}
    return [example._replace(group=groups[n]) for n, example in enumerate(examples)]
