"""The data of text pairs: dates, reversal, pronunciation and translation."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Sequence
from copy import copy
from typing import Unpack

import numpy as np

from attnlab.console.metric import Metric
from attnlab.data import names
from attnlab.data.batches import Buckets, pad, rounded
from attnlab.data.io.files import DataError
from attnlab.data.names import PARTS, check_part
from attnlab.data.repeats import ambiguous, repeated
from attnlab.data.text.example import Example, Parts
from attnlab.data.text.marks import DEFAULT, SOURCE_MARKS, mark_count, marked
from attnlab.data.text.units import TokenizerSpec
from attnlab.data.text.vocabulary import END, PAD
from attnlab.tasks.base.metrics import EXACT_MATCH, PERPLEXITY, TOKEN_ACCURACY, WORD_ERROR_RATE, perplexity
from attnlab.tasks.base.primary_metric import too_short
from attnlab.tasks.base.sampled import sampled
from attnlab.tasks.base.task import Row, TaskData
from attnlab.tasks.base.text_interface import Batch
from attnlab.tasks.text.pair_encoding import encode_pairs, fit_tokenizers, unknown_count, unknown_symbols
from attnlab.tasks.text.pairing import PairInterface, PairOptions, written

EXAMINED = 256  # examples in an evaluation batch
SOURCES = "sources"  # what `repeated` compares
SHARES = (EXACT_MATCH, WORD_ERROR_RATE)  # metrics that count each example as correct or wrong
SEPARATE = "in several examples with different references"
Measure = Callable[[Sequence[str], Sequence[Sequence[str]]], dict[str, float]]
Sides = tuple[list[list[int]], list[list[int]]]  # ids of sources, ids of targets


class PairData(PairInterface, TaskData):
    """Pairs of texts, trained by teacher forcing and answered by decoding.

    Each target of a training example makes a pair of its own. An evaluation source is read without its symbols that
    never occur in training. `notes` report how many examples have such symbols, how many references have them, and how
    many sources also occur in training.

    Args:
        parts: The examples of "train", "valid" and "test".
        units: The tokenizers of sources and of targets. A single value makes one vocabulary for both.
            Vocabularies are learned from the training part only.
        measure: Computes metrics of texts, `measure(answers, references)`.
        metrics: The metrics of `measure`, the primary metric first. If examples have groups, it is also reported for
            each group, as "metric.group".
        buckets: The largest number of different batch lengths.
        **how: Further arguments of `PairInterface`. With `likelihood`, {"perplexity"} of the first references is
            reported, for each symbol.

    Raises:
        DataError: If a part is empty, or if a training example has an empty source or target.
    """

    def __init__(
        self,
        parts: Parts,
        units: tuple[TokenizerSpec, ...],
        measure: Measure,
        metrics: tuple[Metric, ...],
        buckets: int = 3,
        **how: Unpack[PairOptions],
    ):
        names.check("source_marks", source_marks := how.get("source_marks", DEFAULT), SOURCE_MARKS)
        _refuse_empty(parts)
        self.metric, *more = metrics
        self.more_metrics = (*more, TOKEN_ACCURACY, PERPLEXITY)
        self._parts, self._measure = parts, measure
        self.figure = "nats" if how.get("likelihood") else ""
        tokenizers = fit_tokenizers(parts, units)
        pairs = [(example.source, target) for example in parts["train"] for target in example.targets]
        sources = [marked(tokenizers[0].encode(written(source)), source_marks) for source, _ in pairs]
        targets = [[*tokenizers[1].encode(written(target)), END] for _, target in pairs]
        self._sources, self._targets = pad(sources), pad(targets)
        self.buckets = Buckets(list(zip(map(len, sources), map(len, targets), strict=True)), buckets)
        encoded = {part: encode_pairs(tokenizers, parts[part], source_marks) for part in ("valid", "test")}
        self._examples: dict[str, Sides] = {part: (sides[0], sides[1]) for part, sides in encoded.items()}
        self.notes = tuple(
            f"{part}: {unknown_count(side, count, len(parts[part]))}"
            for part, (_, _, counts) in encoded.items()
            for side, count in enumerate(counts)
            if count
        ) + repeated({part: [written(example.source) for example in parts[part]] for part in PARTS}, SOURCES)
        self.notes += ambiguous({part: _answers(parts[part]) for part in ("valid", "test")}, "source", SEPARATE)
        references = [
            [*tokenizers[1].encode(written(target), known=True), END]
            for part in ("valid", "test")
            for example in parts[part]
            for target in example.targets
        ]
        # Rounded like the widths of batches, so that a table of positions covers their padding. Every reference counts,
        # so that the model can produce any of them.
        longest = max(map(len, sources + [ids for sides in self._examples.values() for ids in sides[0]]))
        answer = max(map(len, targets + references))
        widths = {source for source, _ in self.buckets.widths}
        lengths = int(rounded(longest)), int(rounded(answer))
        super().__init__(*tokenizers, lengths, sorted(widths), **how)
        self.fingerprint = _fingerprint(parts)
        self._left_out = {part: self._too_short(part) for part in ("valid", "test")}
        for part, left_out in self._left_out.items():
            if self.metric.name in left_out:
                raise DataError(f"{_zero(part, self.metric.name)}; choose another primary metric")
            self.notes += self._notes_left_out(part, part)

    @property
    def first_steps(self) -> tuple[int, ...]:
        """The first step of each bucket."""
        return self.buckets.first_steps

    def batch(self, seed: int, step: int, size: int) -> Batch:
        """Returns {"source": [B S], "target": [B T]} int32. A target ends with END, and a source has its marks."""
        rows, (S, T) = self.buckets.batch(seed, step, size)
        return {"source": self._sources[rows, :S], "target": self._targets[rows, :T]}

    def eval_batches(self, part: str, limit: int | None = None) -> list[Batch]:
        """Returns batches like those of training.

        Targets are the first references, and rows that fill up a batch are all PAD.
        """
        rows = self._examined(part, limit)
        sources, targets = ([side[n] for n in rows] for side in self._examples[part])
        count = len(rows)
        size = min(EXAMINED, count)
        missing = -count % size
        array = {
            "source": pad(sources + [[]] * missing, self.shape.source_length),
            "target": pad(targets + [[]] * missing, self.shape.target_length),
        }
        starts = range(0, count, size)
        return [{name: whole[n : n + size] for name, whole in array.items()} for n in starts]

    def score(self, part: str, answers: list[Batch], limit: int | None = None) -> dict[str, float]:
        """Returns the metrics over the examples, and the primary metric over each group.

        The result is {} if no example has a reference. BLEU is left out where all references of the part, or of the
        group in it, are so short that perfect answers would have 0.

        Raises:
            ValueError: If there are fewer answers than examples.
        """
        examples = [self._parts[part][n] for n in self._examined(part, limit)]
        tokens = [row for answer in answers for row in np.asarray(answer["tokens"]).tolist()]
        if not any(example.targets for example in examples):
            return {}
        if len(tokens) < len(examples):
            raise ValueError(f"expected answers to {len(examples)} examples of {part!r}, got {len(tokens)}")
        pairs = [(self.target.decode(row), example) for row, example in zip(tokens, examples, strict=False)]
        groups = sorted({example.group for example in examples} - {""})
        members = {group: [pair for pair in pairs if pair[1].group == group] for group in groups}
        primary = self.metric.name
        by_group = {f"{primary}.{name}": self._score(them)[primary] for name, them in members.items()}
        found = self._score(pairs) | self._likelihood(part, answers, limit) | by_group
        return {name: value for name, value in found.items() if name not in self._left_out[part]}

    def with_test(self, examples: list[Example], path: str, places: Sequence[str]) -> PairData:
        """Returns the data with other examples as the test part, all with targets or all without.

        Args:
            examples: The examples.
            path: The path of their file, for messages.
            places: The place of each example in the file, for example "line 3".

        Raises:
            DataError: If a source is longer than the model reads, or a reference longer than it can answer. The message
                names the first one.
        """
        sources, targets, _ = encode_pairs((self.source, self.target), examples, self.source_marks)
        # The marks of a source do not count, because they are not in the file.
        for side, rows, more, room in (
            ("source", sources, mark_count(self.source_marks), self.source_room),
            ("reference", targets, 0, self.shape.target_length),
        ):
            for place, ids in zip(places, rows, strict=True):
                if (count := len(ids) - more) > room:
                    size = f"the {side} has {count} symbols, but the model supports at most {room}"
                    raise DataError(f"{path}, {place}: {size}")
        found = copy(self)
        found._parts = self._parts | {"test": examples}
        found._examples = self._examples | {"test": (sources, targets)}
        known, asked = ([written(each.source) for each in held] for held in (self._parts["train"], examples))
        found._left_out = self._left_out | {"test": found._too_short("test")}
        found.notes = (
            *unknown_symbols(path, places, (self.source, self.target), examples),
            *repeated({"train": known, path: asked}, SOURCES),
            *ambiguous({path: _answers(examples)}, "source", SEPARATE),
            *found._notes_left_out("test", path),
        )
        return found

    def map_rows(self, batch: Batch) -> list[int]:
        """Returns the longest, the median and the shortest of the sources."""
        order = np.argsort(np.sum(np.asarray(batch["source"]) != PAD, axis=1), kind="stable")
        return list(dict.fromkeys(int(order[place]) for place in (-1, len(order) // 2, 0)))

    def rows(self, part: str, answers: list[Batch], limit: int | None = None) -> list[Row]:
        """Returns source, references and answer of each example.

        With `likelihood`, the figure is the first reference's cost in nats.
        """
        examples = [self._parts[part][n] for n in self._examined(part, limit)]
        texts = [self.target.decode(row) for answer in answers for row in np.asarray(answer["tokens"]).tolist()]
        nats = [float(n) for answer in answers if "nats" in answer for n in np.asarray(answer["nats"])]
        return [
            Row(
                written(example.source),
                " ||| ".join(map(written, example.targets)) if example.targets else None,
                text,
                nats[n] if nats and example.targets else None,
            )
            for n, (example, text) in enumerate(zip(examples, texts, strict=False))
        ]

    def count_scored(self, part: str, limit: int | None = None) -> int | None:
        """Returns the number of examples, if the primary metric counts correct or wrong examples."""
        return len(self._examined(part, limit)) if self.metric in SHARES else None

    def _likelihood(self, part: str, answers: list[Batch], limit: int | None) -> dict[str, float]:
        if not all("nats" in answer for answer in answers):
            return {}
        nats = sum(float(np.asarray(answer["nats"], np.float64).sum()) for answer in answers)
        tokens = sum(len(self._examples[part][1][n]) for n in self._examined(part, limit))
        return {"perplexity": perplexity(nats, tokens)}

    def _score(self, pairs: list[tuple[str, Example]]) -> dict[str, float]:
        return self._measure([answer for answer, _ in pairs], [self._references(example) for _, example in pairs])

    def _references(self, example: Example) -> list[str]:
        return [self.target.normalize(written(target)) for target in example.targets]

    def _too_short(self, part: str) -> frozenset[str]:
        """Returns the metrics for which all references of a part, or of a group in it, are too short."""
        by_group: dict[str, list[str]] = {}
        for example in self._parts[part]:
            by_group.setdefault(example.group, []).extend(self._references(example))
        whole = [reference for references in by_group.values() for reference in references]
        found = [metric.name for metric in (self.metric, *self.more_metrics) if too_short(metric, whole)]
        groups = [name for name, references in by_group.items() if name and too_short(self.metric, references)]
        return frozenset([*found, *(f"{self.metric.name}.{name}" for name in groups)])

    def _notes_left_out(self, part: str, where: str) -> tuple[str, ...]:
        """Returns messages about the primary metric and its groups that are left out of the scores of a part."""
        primary = self.metric.name
        named = sorted(name for name in self._left_out[part] if f"{name}.".startswith(f"{primary}."))
        return tuple(f"{_zero(where, name)}; it is left out" for name in named)

    def _examined(self, part: str, limit: int | None) -> np.ndarray:
        """Returns the rows of the evaluated examples."""
        check_part(part, limit)
        groups = [example.group for example in self._parts[part]]
        return sampled(len(groups), limit, groups)


def _answers(examples: Iterable[Example]) -> list[tuple[tuple, frozenset, str]]:
    """Returns the source with its group, the references, and the text of the source of each example with references."""
    return [
        ((tuple(each.source), each.group), frozenset(map(tuple, each.targets)), written(each.source))
        for each in examples
        if each.targets
    ]


def _zero(where: str, metric: str) -> str:
    return f"{where}: perfect answers would have {metric} 0, because all references are shorter than its n-grams"


def _refuse_empty(parts: Parts) -> None:
    for part in ("train", "valid", "test"):
        if not parts.get(part):
            raise DataError(f"the part {part!r} has no examples")
    for n, (source, targets, _) in enumerate(parts["train"], start=1):
        if not source or not targets or not all(targets):
            raise DataError(
                f"example {n} of the part 'train' has an empty side: source={source!r}, targets={targets!r}"
            )


def _fingerprint(parts: Parts) -> str:
    digest = hashlib.sha256()
    for part in ("train", "valid", "test"):
        for source, targets, group in parts[part]:
            digest.update(repr((part, tuple(source), tuple(map(tuple, targets)), group)).encode())
    return digest.hexdigest()
