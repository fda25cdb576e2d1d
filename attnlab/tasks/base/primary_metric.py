"""The choice of the primary metric for a user's own text pairs, from what the references look like."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import median

from attnlab.console.metric import Metric
from attnlab.data.io.files import DataError
from attnlab.data.names import PARTS
from attnlab.data.text.example import Parts
from attnlab.data.text.listed import Bytes, Characters, Words
from attnlab.data.text.units import TokenizerSpec
from attnlab.tasks.base.metrics import (
    BLEU,
    BLEU_CHARACTERS,
    BLEU_TOKENISED_LOWER,
    BLEU_ZH,
    CHRF,
    EXACT_MATCH,
    WORD_EDIT_RATE,
    WORD_ERROR_RATE,
    bleu,
    bleu_characters,
    bleu_tokenised_lower,
    bleu_zh,
    chrf,
    exact_match,
    word_edits,
    word_errors,
)

AUTO = "auto"
MEASURES = {
    BLEU: bleu,
    BLEU_ZH: bleu_zh,
    BLEU_CHARACTERS: bleu_characters,
    BLEU_TOKENISED_LOWER: bleu_tokenised_lower,
    CHRF: chrf,
    WORD_EDIT_RATE: word_edits,
    WORD_ERROR_RATE: word_errors,
    EXACT_MATCH: exact_match,
}
NAMED = {metric.name: metric for metric in MEASURES}
METRICS = (AUTO, *NAMED)

ORDER = 4  # BLEU-4 counts n-grams of up to four tokens
UNSPACED = 8  # in a script without spaces, the mean characters between spaces from which references are sentences
SYMBOLS, USES = 200, 20  # a set of symbols has at most SYMBOLS distinct words, each used USES times on average
SPELLED = 0.2  # the fraction of words (`_is_spelled`) from which targets are text, not symbols

# Unicode's categories: small letters, letters without case, and vowel signs, as in Hindi.
LETTERS, DIACRITICS = ("Ll", "Lo", "Mc"), ("Mn", "Lm")
# Scripts without spaces between words: Thai, Lao, Tibetan, Myanmar, Khmer, kana and Han.
_KANA = "\u3040-\u30ff\u31f0-\u31ff\uff66-\uff9d"
_HAN = "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003134f"
_BARE = re.compile(f"[\u0e00-\u0eff\u0f00-\u109f\u1780-\u17ff{_KANA}{_HAN}]")
_CHINESE = re.compile(f"[{_HAN}]")
_JAPANESE = re.compile(f"[{_KANA}]")


@dataclass(frozen=True)
class PrimaryMetric:
    """The primary metric, the reported metrics, and why they were chosen."""

    metrics: tuple[Metric, ...]
    """All reported metrics, the primary metric first."""
    why: str
    """A description of the references, for messages."""
    units: str = ""
    """The name of the units that fit the targets better than the default, "words" or "characters". "" if none does."""

    @property
    def metric(self) -> Metric:
        """The primary metric."""
        return self.metrics[0]

    def measure(self, answers: Sequence[str], references: Sequence[Sequence[str]]) -> dict[str, float]:
        """Returns the reported metrics of answers by name."""
        found = [MEASURES[metric](answers, references) for metric in self.metrics]
        return {name: value for values in found for name, value in values.items()}

    def notes(self, choice: str, units: TokenizerSpec) -> tuple[str, ...]:
        """Returns messages for the user about the choice.

        Args:
            choice: The value of `task.metric`.
            units: The units in which targets are read.
        """
        chosen = f"primary metric: {self.metric.name}, because {self.why}; task.metric=NAME selects another"
        notes = (chosen,) if choice == AUTO else ()
        if self.units == "words" and isinstance(units, Characters | Bytes):
            advice = "use task.target_units=words to read each symbol as one token"
            return (*notes, f"targets look like symbols separated by spaces; {advice}")
        if self.units == "characters" and isinstance(units, Words):
            advice = "use task.target_units=characters to read them by character"
            return (*notes, f"targets are read as words but contain no spaces; {advice}")
        return notes


def primary_metric(parts: Parts, choice: str = AUTO) -> PrimaryMetric:
    """Chooses the primary metric from the texts of the examples, or uses the metric `choice`.

    The references of "valid" and "test" decide. The targets of all parts decide whether they are made of a small set of
    symbols, for example phones.

    - Sentences in a script without spaces have character BLEU. If they are Chinese, this is sacreBLEU's `zh`.
    - References with a median of fewer than four words, and symbols, have exact match.
    - The latter have the fraction of wrong answers (`word_error_rate`) instead if an example has several references.
      Symbols also have it if all sources are single words.
    - All other references are sentences and have BLEU, unless those of a part all have fewer than four words.

    Raises:
        DataError: If BLEU is requested and would be 0 for perfect answers to a part.

    >>> from attnlab.data.text.example import Example
    >>> one = [Example("rot", ("red",)), Example("grün", ("green",))]
    >>> primary_metric({"train": one, "valid": one, "test": one}).metric.name
    'exact_match'
    """
    found = _primary_metric(parts)
    if choice == AUTO:
        return found
    if part := _part_too_short(NAMED[choice], parts):
        raise DataError(
            f"task.metric={choice!r} counts n-grams of {ORDER} tokens, but no reference of {part} has so many, so that "
            f"perfect answers would score 0; use task.metric={found.metric.name}"
        )
    return PrimaryMetric(_first(NAMED[choice], found.metrics), "", found.units)


def _primary_metric(parts: Parts) -> PrimaryMetric:
    """Chooses the primary metric from the texts."""
    examples = [*parts["valid"], *parts["test"]]
    references = [_text(target) for example in examples for target in example.targets]
    several = sum(len(example.targets) > 1 for example in examples)
    if (metric := _unspaced(references)) and not _part_too_short(metric, parts):
        return PrimaryMetric((metric, CHRF, EXACT_MATCH), "references have no spaces between words", "characters")
    words = median(len(reference.split()) for reference in references)
    symbols = _are_symbols(_text(target) for each in parts.values() for example in each for target in example.targets)
    part = "" if symbols or words < ORDER else _part_too_short(BLEU, parts)
    if words >= ORDER and not symbols and not part:
        metrics = (BLEU, BLEU_TOKENISED_LOWER, CHRF, WORD_EDIT_RATE, EXACT_MATCH)
        return PrimaryMetric(metrics, f"references are sentences (median {words:g} words)")
    short = f"are short (median {words:g} {'word' if words == 1 else 'words'})"
    short = f"of {part} have fewer than {ORDER} words" if part else short
    kind = "consist of a few distinct symbols" if symbols else short
    units = "words" if symbols else "characters" if words == 1 else ""
    metrics = (EXACT_MATCH, WORD_ERROR_RATE, WORD_EDIT_RATE, CHRF)
    if several:
        why = f"references {kind} and {several:,} of {len(examples):,} examples have several references"
        return PrimaryMetric(_first(WORD_ERROR_RATE, metrics), why, units)
    if symbols and all(len(_text(example.source).split()) == 1 for example in examples):
        return PrimaryMetric(_first(WORD_ERROR_RATE, metrics), f"sources are single words and references {kind}", units)
    return PrimaryMetric(metrics, f"references {kind}", units)


def _part_too_short(metric: Metric, parts: Parts) -> str:
    """Returns the first of "valid" and "test" whose references are too short for the metric, or ""."""
    texts = {part: [_text(target) for example in parts[part] for target in example.targets] for part in PARTS[1:]}
    return next((part for part, references in texts.items() if too_short(metric, references)), "")


def _first(metric: Metric, metrics: Iterable[Metric]) -> tuple[Metric, ...]:
    """Returns the metrics with one of them first, or added as the first."""
    return tuple(dict.fromkeys((metric, *metrics)))


def _unspaced(references: Sequence[str]) -> Metric | None:
    """Returns the metric for sentences in a script without spaces between words, or None for other references."""
    text = "".join(references)
    tokens = [token for reference in references for token in reference.split()]
    letters = sum(map(len, tokens))
    if 2 * len(_BARE.findall(text)) <= letters or letters < UNSPACED * len(tokens):
        return None
    # sacreBLEU's `zh` splits Chinese characters, but not kana, Thai or other scripts.
    chinese = 2 * len(_CHINESE.findall(text)) > letters and not _JAPANESE.search(text)
    return BLEU_ZH if chinese else BLEU_CHARACTERS


def _are_symbols(targets: Iterable[str]) -> bool:
    """Returns whether targets are sequences of a few symbols separated by spaces, for example phones or digits."""
    distinct: set[str] = set()
    tokens = count = spelled = 0
    for target in targets:
        words = target.split()
        distinct.update(words)
        tokens, count = tokens + len(words), count + 1
        spelled += sum(map(_is_spelled, words))
        if len(distinct) > SYMBOLS:
            return False
    # A target of one word is a class or a word, however often it occurs.
    # Few sentences repeat few words as symbols do, but they are spelled as text.
    return tokens >= USES * len(distinct) and tokens >= 2 * count and spelled < SPELLED * tokens


def _is_spelled(word: str) -> bool:
    """Returns whether a token looks like a word: four letters or more, none of them a capital, and nothing else.

    Diacritics do not count as letters. Many scripts have no capitals.

    >>> _is_spelled("tree"), _is_spelled("किताब"), _is_spelled("t͡ɕʰː"), _is_spelled("JUMP")
    (True, True, False, False)
    """
    kinds = list(map(unicodedata.category, word))
    return {*kinds} <= {*LETTERS, *DIACRITICS} and sum(map(kinds.count, LETTERS)) >= 4


def too_short(metric: Metric, references: Sequence[str]) -> bool:
    """Returns whether the metric is a BLEU and the references are too short for it: perfect answers would score 0.

    >>> too_short(BLEU, ["red", "dark green"]), too_short(EXACT_MATCH, ["red"])
    (True, False)
    """
    counts_ngrams = metric in (BLEU, BLEU_TOKENISED_LOWER, BLEU_ZH, BLEU_CHARACTERS)
    if not counts_ngrams or not references or any(len(reference.split()) >= ORDER for reference in references):
        return False
    return MEASURES[metric](references, [[reference] for reference in references])[metric.name] == 0


def _text(symbols: Sequence[str]) -> str:
    return symbols if isinstance(symbols, str) else " ".join(symbols)
