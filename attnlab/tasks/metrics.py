"""How well answers match: exact match and error rates, each against the nearest of several references."""

from collections.abc import Sequence
from itertools import pairwise

Answer = tuple[str, ...]
References = Sequence[Sequence[str]]


def exact_match(answers: Sequence[Answer], references: Sequence[References]) -> dict[str, float]:
    """{"exact_match"}: the share of answers that are one of their references."""
    return {"exact_match": _matched(answers, references)}


def error_rates(answers: Sequence[Answer], references: Sequence[References]) -> dict[str, float]:
    """{"word_error_rate", "phoneme_error_rate"}.

    Word error: the share of answers that are none of their references. Phoneme error: Σ d(answer, r) / Σ |r|
    with r the nearest reference of each answer (the first of equals); above 1 where answers run on.
    """
    nearest = [
        min((distance(answer, reference), n, len(reference)) for n, reference in enumerate(accepted))
        for answer, accepted in zip(answers, references, strict=True)
    ]
    length = sum(length for _, _, length in nearest)
    return {
        "word_error_rate": 1 - _matched(answers, references),
        "phoneme_error_rate": sum(errors for errors, _, _ in nearest) / max(1, length),
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


def _matched(answers: Sequence[Answer], references: Sequence[References]) -> float:
    pairs = zip(answers, references, strict=True)
    right = sum(answer in {tuple(reference) for reference in accepted} for answer, accepted in pairs)
    return right / max(1, len(answers))
