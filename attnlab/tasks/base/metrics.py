"""How well answers match their references, of which each answer has one or several: rates in 0 … 1.

Exact match and error rates take sequences of symbols; what is named for text takes strings.
"""

import math
from bisect import bisect_left
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

Answer = tuple[str, ...]
References = Sequence[Sequence[str]]


def bleu(answers: Sequence[str], references: Sequence[Sequence[str]]) -> dict[str, float]:
    """{"bleu"}: corpus BLEU-4 of text, mixed case, cut by sacreBLEU's 13a (Papineni et al. 2002; Post 2018).

    Raises ValueError where there are no answers, or not a list of references to each.
    """
    return {"bleu": _bleu(answers, references, tokenize="13a")}


def bleu_tokenised_lower(answers: Sequence[str], references: Sequence[Sequence[str]]) -> dict[str, float]:
    """{"bleu_tokenised_lower"}: corpus BLEU-4 of text in lower case, words being what stands between spaces.

    For text that is tokenised already, as the published numbers on Multi30k have it; never beside `bleu`. Raises
    as `bleu` does.
    """
    return {"bleu_tokenised_lower": _bleu(answers, references, tokenize="none", lowercase=True)}


def bleu_zh(answers: Sequence[str], references: Sequence[Sequence[str]]) -> dict[str, float]:
    """{"bleu_zh"}: corpus BLEU-4 of Chinese text, each Chinese character a token (sacreBLEU's `zh`).

    Raises as `bleu` does.
    """
    return {"bleu_zh": _bleu(answers, references, tokenize="zh")}


def bleu_characters(answers: Sequence[str], references: Sequence[Sequence[str]]) -> dict[str, float]:
    """{"bleu_characters"}: corpus BLEU-4 of text in any script, each character a token (sacreBLEU's `char`).

    For scripts without spaces between words, such as those of Japanese and Thai. Raises as `bleu` does.
    """
    return {"bleu_characters": _bleu(answers, references, tokenize="char")}


def chrf(answers: Sequence[str], references: Sequence[Sequence[str]]) -> dict[str, float]:
    """{"chrf"}: chrF2 of text, over characters in runs of one to six, spaces apart (Popović 2015; 2016).

    Raises as `bleu` does.
    """
    from sacrebleu.metrics.chrf import CHRF

    return {"chrf": CHRF().corpus_score(list(answers), _streams(answers, references)).score / 100}


def word_edits(answers: Sequence[str], references: Sequence[Sequence[str]]) -> dict[str, float]:
    """{"word_edit_rate"} of text: Σ d(answer, r) / Σ |r| in words, r the nearest reference of each answer.

    The word error rate of speech recognition; `error_rates` means by that name the share of wrong words. Raises as
    `bleu` does.
    """
    _check(answers, references)
    split = [answer.split() for answer in answers]
    accepted = [[reference.split() for reference in each] for each in references]
    return {"word_edit_rate": _edit_rate(split, accepted)}


def word_errors(answers: Sequence[Sequence[str]], references: Sequence[References]) -> dict[str, float]:
    """{"word_error_rate"}: the share of answers that are none of their references, as `error_rates` has it."""
    return {"word_error_rate": 1 - _matched(answers, references)}


def perplexity(nats: float, tokens: int) -> float:
    """exp(nats / tokens): of the sum of cross-entropies over that many tokens; ∞ where it is beyond a float.

    >>> perplexity(0.0, 5)
    1.0
    """
    try:
        return math.exp(nats / max(1, tokens))
    except OverflowError:
        return math.inf


def by_length(lengths: Sequence[int], edges: Sequence[int]) -> dict[str, list[int]]:
    """Which examples have which length: their indices by bucket, for a metric of each. Empty buckets are left out.

    The edges are the longest of each bucket but the last. ValueError where they do not ascend from 1 or more.

    >>> by_length([3, 10, 11, 25], (10, 20))
    {'0-10': [0, 1], '11-20': [2], '21+': [3]}
    """
    if list(edges) != sorted({*edges}) or (edges and edges[0] < 1):
        raise ValueError(f"{edges=} must ascend, from 1 or more")
    first = [0, *(edge + 1 for edge in edges)]
    names = [*(f"{low}-{high}" for low, high in zip(first, edges, strict=False)), f"{first[-1]}+"]
    buckets: dict[str, list[int]] = {name: [] for name in names}
    for n, length in enumerate(lengths):
        buckets[names[bisect_left(edges, length)]].append(n)
    return {name: members for name, members in buckets.items() if members}


def exact_match(answers: Sequence[Sequence[str]], references: Sequence[References]) -> dict[str, float]:
    """{"exact_match"}: the share of answers that are one of their references."""
    return {"exact_match": _matched(answers, references)}


def error_rates(answers: Sequence[Sequence[str]], references: Sequence[References]) -> dict[str, float]:
    """{"word_error_rate", "phoneme_error_rate"}.

    Word error: the share of answers that are none of their references. Phoneme error: Σ d(answer, r) / Σ |r|
    with r the nearest reference of each answer (the first of equals); above 1 where answers run on.
    """
    return {
        "word_error_rate": 1 - _matched(answers, references),
        "phoneme_error_rate": _edit_rate(answers, references),
    }


def distance(a: Sequence[str], b: Sequence[str]) -> int:
    """The fewest insertions, deletions and substitutions that turn `a` into `b` (Levenshtein 1966).

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


def _edit_rate(answers: Sequence[Sequence[str]], references: Sequence[Sequence[Sequence[str]]]) -> float:
    nearest = [
        min((distance(answer, reference), n, len(reference)) for n, reference in enumerate(accepted))
        for answer, accepted in zip(answers, references, strict=True)
    ]
    return sum(errors for errors, _, _ in nearest) / max(1, sum(length for _, _, length in nearest))


def _matched(answers: Sequence[Sequence[str]], references: Sequence[References]) -> float:
    pairs = zip(answers, references, strict=True)
    # A string is the sequence of its characters: both sides are compared as such.
    right = sum(tuple(answer) in {tuple(reference) for reference in accepted} for answer, accepted in pairs)
    return right / max(1, len(answers))


def _bleu(answers: Sequence[str], references: Sequence[Sequence[str]], **options: Any) -> float:
    from sacrebleu.metrics.bleu import BLEU

    # What it says of text that looks tokenised is for those who choose a tokeniser; here the name says which.
    return BLEU(force=True, **options).corpus_score(list(answers), _streams(answers, references)).score / 100


def _streams(answers: Sequence[str], references: Sequence[Sequence[str]]) -> list[list[Any]]:
    """The references as sacreBLEU reads them: the first of each answer, the second of each, …, None where none."""
    _check(answers, references)
    most = max(map(len, references))
    return [[accepted[n] if n < len(accepted) else None for accepted in references] for n in range(most)]


def _check(answers: Sequence[str], references: Sequence[Sequence[str]]) -> None:
    if not len(answers) == len(references) > 0:
        raise ValueError(f"{len(answers)} answers to {len(references)} lists of references")
    for n, accepted in enumerate(references):
        # A string would be read as references of one character each.
        if isinstance(accepted, str) or not accepted:
            raise ValueError(f"references[{n}]={accepted!r} must be a list of strings, and not empty")
