"""Metrics of answers against references. Each answer has one or several references, and rates are in 0 … 1.

Exact match and error rates take sequences of symbols. The BLEU and chrF metrics and `word_edits` take strings.
"""

import math
from bisect import bisect_left
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from attnlab.console.metric import Metric

Answer = tuple[str, ...]
References = Sequence[Sequence[str]]

EXACT_MATCH = Metric("exact_match", "%", 0, 1, higher=True)
ACCURACY = Metric("accuracy", "%", 0, 1, higher=True)
TOKEN_ACCURACY = Metric("token_accuracy", "%", 0, 1, higher=True)
WORD_ERROR_RATE = Metric("word_error_rate", "%", 0, 1)
# Rates of edits can exceed 1.
WORD_EDIT_RATE = Metric("word_edit_rate", "%", 0)
PHONEME_ERROR_RATE = Metric("phoneme_error_rate", "%", 0)
DIGIT_ERROR_RATE = Metric("digit_error_rate", "%", 0)
BLEU = Metric("bleu", "points", 0, 1, higher=True)
BLEU_ZH = Metric("bleu_zh", "points", 0, 1, higher=True)
BLEU_CHARACTERS = Metric("bleu_characters", "points", 0, 1, higher=True)
BLEU_TOKENISED_LOWER = Metric("bleu_tokenised_lower", "points", 0, 1, higher=True)
CHRF = Metric("chrf", "points", 0, 1, higher=True)
PERPLEXITY = Metric("perplexity", low=1)
NATS = Metric("nats", low=0)


def bleu(answers: Sequence[str], references: Sequence[Sequence[str]]) -> dict[str, float]:
    """Computes {"bleu"}: corpus BLEU-4 of text (Papineni et al. 2002; Post 2018).

    It is case-sensitive, and text is tokenised by sacreBLEU's 13a.

    Args:
        answers: The answers.
        references: The references of each answer.

    Raises:
        ValueError: If there are no answers, or if an answer has no list of references.
    """
    return {"bleu": _bleu(answers, references, tokenize="13a")}


def bleu_tokenised_lower(answers: Sequence[str], references: Sequence[Sequence[str]]) -> dict[str, float]:
    """Computes {"bleu_tokenised_lower"}: corpus BLEU-4 of lower-cased text whose words are separated by spaces.

    It is meant for text that is already tokenised, as in the published numbers on Multi30k. Its values are not
    comparable with `bleu`. Raises ValueError as `bleu` does.
    """
    return {"bleu_tokenised_lower": _bleu(answers, references, tokenize="none", lowercase=True)}


def bleu_zh(answers: Sequence[str], references: Sequence[Sequence[str]]) -> dict[str, float]:
    """Computes {"bleu_zh"}: corpus BLEU-4 of Chinese text, with each Chinese character as a token (sacreBLEU's `zh`).

    Raises ValueError as `bleu` does.
    """
    return {"bleu_zh": _bleu(answers, references, tokenize="zh")}


def bleu_characters(answers: Sequence[str], references: Sequence[Sequence[str]]) -> dict[str, float]:
    """Computes {"bleu_characters"}: corpus BLEU-4 of text, with each character as a token (sacreBLEU's `char`).

    It is meant for scripts without spaces between words, for example Japanese and Thai. Raises ValueError as `bleu`
    does.
    """
    return {"bleu_characters": _bleu(answers, references, tokenize="char")}


def chrf(answers: Sequence[str], references: Sequence[Sequence[str]]) -> dict[str, float]:
    """Computes {"chrf"}: chrF2 of text, over character n-grams of one to six, without spaces (Popović 2015; 2016).

    Raises ValueError as `bleu` does.
    """
    from sacrebleu.metrics.chrf import CHRF as SacreChrf

    return {"chrf": SacreChrf().corpus_score(list(answers), _streams(answers, references)).score / 100}


def word_edits(answers: Sequence[str], references: Sequence[Sequence[str]]) -> dict[str, float]:
    """Computes {"word_edit_rate"} of text: Σ d(answer, r) / Σ |r| in words.

    Here r is the nearest reference of each answer. Speech recognition calls this the word error rate. In `error_rates`
    that name means the fraction of wrong words. Raises ValueError as `bleu` does.
    """
    _check(answers, references)
    split = [answer.split() for answer in answers]
    accepted = [[reference.split() for reference in each] for each in references]
    return {"word_edit_rate": _edit_rate(split, accepted)}


def word_errors(answers: Sequence[Sequence[str]], references: Sequence[References]) -> dict[str, float]:
    """Computes {"word_error_rate"}, the fraction of answers that equal no reference.

    Raises ValueError as `bleu` does.
    """
    return {"word_error_rate": 1 - _matched(answers, references)}


def perplexity(nats: float, tokens: int) -> float:
    """Computes exp(nats / tokens).

    Args:
        nats: The sum of the cross-entropies.
        tokens: The number of tokens.

    Returns:
        The perplexity, or ∞ if it exceeds the range of a float.

    >>> perplexity(0.0, 5)
    1.0
    """
    try:
        return math.exp(nats / max(1, tokens))
    except OverflowError:
        return math.inf


def by_length(lengths: Sequence[int], edges: Sequence[int]) -> dict[str, list[int]]:
    """Groups examples by length, to compute a metric for each group.

    Args:
        lengths: The length of each example.
        edges: The largest length of each bucket except for the last.

    Returns:
        The indices of the examples in each bucket by name. Empty buckets are left out.

    Raises:
        ValueError: If the edges do not ascend from 1 or more.

    >>> by_length([3, 10, 11, 25], (10, 20))
    {'0-10': [0, 1], '11-20': [2], '21+': [3]}
    """
    if list(edges) != sorted({*edges}) or (edges and edges[0] < 1):
        raise ValueError(f"{edges=} must be increasing and at least 1")
    first = [0, *(edge + 1 for edge in edges)]
    names = [*(f"{low}-{high}" for low, high in zip(first, edges, strict=False)), f"{first[-1]}+"]
    buckets: dict[str, list[int]] = {name: [] for name in names}
    for n, length in enumerate(lengths):
        buckets[names[bisect_left(edges, length)]].append(n)
    return {name: members for name, members in buckets.items() if members}


def exact_match(answers: Sequence[Sequence[str]], references: Sequence[References]) -> dict[str, float]:
    """Computes {"exact_match"}: the fraction of answers that equal one of their references.

    Raises ValueError as `bleu` does.
    """
    return {"exact_match": _matched(answers, references)}


def error_rates(answers: Sequence[Sequence[str]], references: Sequence[References]) -> dict[str, float]:
    """Computes {"word_error_rate", "phoneme_error_rate"}.

    The word error rate is the fraction of answers that equal none of their references. The phoneme error rate is Σ
    d(answer, r) / Σ |r|, where r is the nearest reference of each answer (the first of equally near ones). It exceeds 1
    if answers are much too long. Raises ValueError as `bleu` does.
    """
    return {
        "word_error_rate": 1 - _matched(answers, references),
        "phoneme_error_rate": _edit_rate(answers, references),
    }


def distance(a: Sequence[str], b: Sequence[str]) -> int:
    """Returns the fewest insertions, deletions and substitutions that turn `a` into `b` (Levenshtein 1966).

    >>> distance("kitten", "sitting")
    3
    """
    if tuple(a) == tuple(b):
        return 0
    row = list(range(len(b) + 1))
    for n, x in enumerate(a, start=1):
        following = [n]
        for y, (diagonal, above) in zip(b, pairwise(row), strict=True):
            following.append(min(diagonal + (x != y), above + 1, following[-1] + 1))
        row = following
    return row[-1]


def _edit_rate(answers: Sequence[Sequence[str]], references: Sequence[References]) -> float:
    _check(answers, references)
    nearest = [
        min((distance(answer, reference), n, len(reference)) for n, reference in enumerate(accepted))
        for answer, accepted in zip(answers, references, strict=True)
    ]
    return sum(errors for errors, _, _ in nearest) / max(1, sum(length for _, _, length in nearest))


def _matched(answers: Sequence[Sequence[str]], references: Sequence[References]) -> float:
    _check(answers, references)
    pairs = zip(answers, references, strict=True)
    # A string is treated as the sequence of its characters, on both sides.
    right = sum(tuple(answer) in {tuple(reference) for reference in accepted} for answer, accepted in pairs)
    return right / len(answers)


def _bleu(answers: Sequence[str], references: Sequence[Sequence[str]], tokenize: str, lowercase: bool = False) -> float:
    from sacrebleu.metrics.bleu import BLEU

    # `force` suppresses the warning about tokenised text. Here the metric's name states the tokeniser.
    return (
        BLEU(force=True, tokenize=tokenize, lowercase=lowercase)
        .corpus_score(list(answers), _streams(answers, references))
        .score
        / 100
    )


def _streams(answers: Sequence[str], references: Sequence[Sequence[str]]) -> list[list[Any]]:
    """Returns the references as sacreBLEU expects them: all first references, all second ones, …

    A missing reference is None, which sacreBLEU accepts and its annotations do not.
    """
    _check(answers, references)
    most = max(map(len, references))
    return [[accepted[n] if n < len(accepted) else None for accepted in references] for n in range(most)]


def _check(answers: Sequence[Sequence[str]], references: Sequence[References]) -> None:
    if not len(answers) == len(references) > 0:
        raise ValueError(
            f"expected at least one answer and a list of references for each, got {len(answers)} answers and "
            f"{len(references)} lists"
        )
    for n, accepted in enumerate(references):
        # A string would be read as one reference for each character.
        if isinstance(accepted, str) or not accepted:
            raise ValueError(f"references[{n}]={accepted!r} must be a non-empty list of references")
