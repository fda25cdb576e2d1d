"""Which metric is the headline of a user's own pairs of texts: what their references look like decides."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import median

from attnlab.data.io.files import DataError
from attnlab.data.text.example import Parts
from attnlab.data.text.listed import Bytes, Characters, Words
from attnlab.data.text.units import TokenizerSpec
from attnlab.tasks.base.metrics import (
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
    "bleu": bleu,
    "bleu_zh": bleu_zh,
    "bleu_characters": bleu_characters,
    "bleu_tokenised_lower": bleu_tokenised_lower,
    "chrf": chrf,
    "word_edit_rate": word_edits,
    "word_error_rate": word_errors,
    "exact_match": exact_match,
}
METRICS = (AUTO, *MEASURES)
LOWER = ("word_edit_rate", "word_error_rate")  # metrics of which less is better

ORDER = 4  # BLEU-4 counts runs of four tokens
UNSPACED = 8  # characters between spaces, on average, from which a script without spaces makes sentences
SYMBOLS, USES = 200, 20  # at most so many distinct words, each used so often on average, are a set of symbols

# Scripts that put no spaces between words: Thai, Lao, Tibetan, Myanmar, Khmer, kana and Han.
_KANA = "\u3040-\u30ff\u31f0-\u31ff\uff66-\uff9d"
_HAN = "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003134f"
_BARE = re.compile(f"[\u0e00-\u0eff\u0f00-\u109f\u1780-\u17ff{_KANA}{_HAN}]")
_CHINESE = re.compile(f"[{_HAN}]")
_JAPANESE = re.compile(f"[{_KANA}]")


@dataclass(frozen=True)
class Headline:
    """The `metric` that decides, the `metrics` that are reported, and what the references look like, in words.

    `units` are the name of the units that fit targets better than characters or words do; "" where nothing speaks
    against those.
    """

    metric: str
    metrics: tuple[str, ...]
    why: str
    units: str = ""

    @property
    def higher(self) -> bool:
        """Whether more of it is better."""
        return self.metric not in LOWER

    def measure(self, answers: Sequence[str], references: Sequence[Sequence[str]]) -> dict[str, float]:
        """The metrics of texts, by name."""
        found = [MEASURES[name](answers, references) for name in self.metrics]
        return {name: value for values in found for name, value in values.items()}

    def notes(self, asked: str, units: TokenizerSpec) -> tuple[str, ...]:
        """What a person should know of the choice, where `asked` is `task.metric` and targets are read in `units`."""
        chosen = f"headline: {self.metric}, because {self.why}; task.metric=NAME takes another"
        said = (chosen,) if asked == AUTO else ()
        if self.units == "words" and isinstance(units, Characters | Bytes):
            return (*said, "targets look like symbols with spaces between them: task.target_units=words reads them so")
        if self.units == "characters" and isinstance(units, Words):
            return (*said, "targets are read as words and have no spaces: task.target_units=characters spells them")
        return said


def headline(parts: Parts, asked: str = AUTO) -> Headline:
    """The headline of these examples, or the metric that is `asked` for: a function of the texts alone.

    The references of "valid" and "test" decide, and the targets of all parts say whether they are made of a small set
    of symbols. Sentences of a script without spaces have BLEU of characters, by sacreBLEU's `zh` where they are
    Chinese. References of fewer than four words in the median, and symbols such as phones, have the share of wrong
    answers (`word_error_rate`) where an example has several references, or symbols answer single words; else exact
    match. All other references are sentences, and have BLEU.

    Raises DataError where BLEU is asked for and would be 0 for perfect answers to a part.

    >>> from attnlab.data.text.example import Example
    >>> one = [Example("rot", ("red",)), Example("grün", ("green",))]
    >>> headline({"train": one, "valid": one, "test": one}).metric
    'exact_match'
    """
    found = _headline(parts)
    if asked == AUTO:
        return found
    for part in ("valid", "test"):
        references = [_text(target) for example in parts[part] for target in example.targets]
        _check_bleu(asked, part, references, found.metric)
    return Headline(asked, tuple(dict.fromkeys((asked, *found.metrics))), "", found.units)


def _headline(parts: Parts) -> Headline:
    examples = [*parts["valid"], *parts["test"]]
    references = [_text(target) for example in examples for target in example.targets]
    several = sum(len(example.targets) > 1 for example in examples)
    if name := _unspaced(references):
        return Headline(name, (name, "chrf", "exact_match"), "references have no spaces between words", "characters")
    words = median(len(reference.split()) for reference in references)
    symbols = _are_symbols(_text(target) for each in parts.values() for example in each for target in example.targets)
    if words >= ORDER and not symbols:
        metrics = ("bleu", "bleu_tokenised_lower", "chrf", "word_edit_rate", "exact_match")
        return Headline("bleu", metrics, f"references are sentences (median {words:g} words)")
    short = f"are short (median {words:g} {'word' if words == 1 else 'words'})"
    kind = "are made of a few symbols" if symbols else short
    units = "words" if symbols else "characters" if words == 1 else ""
    metrics = ("exact_match", "word_error_rate", "word_edit_rate", "chrf")
    if several:
        why = f"references {kind} and {several:,} of {len(examples):,} examples have several"
        return Headline("word_error_rate", metrics, why, units)
    if symbols and all(len(_text(example.source).split()) == 1 for example in examples):
        return Headline("word_error_rate", metrics, f"sources are single words and references {kind}", units)
    return Headline("exact_match", metrics, f"references {kind}", units)


def _unspaced(references: Sequence[str]) -> str:
    """The metric of sentences in a script without spaces between words; "" of anything else."""
    text = "".join(references)
    tokens = [token for reference in references for token in reference.split()]
    letters = sum(map(len, tokens))
    if 2 * len(_BARE.findall(text)) <= letters or letters < UNSPACED * len(tokens):
        return ""
    # sacreBLEU's `zh` sets Chinese characters apart and leaves kana, Thai and the like together.
    chinese = 2 * len(_CHINESE.findall(text)) > letters and not _JAPANESE.search(text)
    return "bleu_zh" if chinese else "bleu_characters"


def _are_symbols(targets: Iterable[str]) -> bool:
    """Whether targets are sequences of a few symbols with spaces between them, such as phones, digits or actions."""
    seen: set[str] = set()
    tokens = count = 0
    for target in targets:
        words = target.split()
        seen.update(words)
        tokens, count = tokens + len(words), count + 1
        if len(seen) > SYMBOLS:
            return False
    # A target of one word is a class or a word, whatever its number.
    return tokens >= USES * len(seen) and tokens >= 2 * count


def _check_bleu(metric: str, part: str, references: Sequence[str], fitting: str) -> None:
    """Raise DataError where a metric is BLEU and no reference of a part is long enough for perfect answers to score."""
    if not metric.startswith("bleu") or any(len(reference.split()) >= ORDER for reference in references):
        return
    if MEASURES[metric](references, [[reference] for reference in references])[metric] == 0:
        raise DataError(
            f"task.metric={metric!r} counts runs of {ORDER} tokens, and no reference of {part} has so many: perfect "
            f"answers would score 0; task.metric={fitting} fits"
        )


def _text(symbols: Sequence[str]) -> str:
    return symbols if isinstance(symbols, str) else " ".join(symbols)
