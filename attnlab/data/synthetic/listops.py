"""ListOps: nested lists of operators and digits, and what they come to (Nangia and Bowman 2018)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

OPERATORS = ("[MIN", "[MAX", "[MED", "[SM")
END = "]"
WORDS = ("·", *(str(n) for n in range(10)), *OPERATORS, END)  # what each id says; the first is padding
DIGIT, OPERATOR, CLOSE = 1, 11, 15  # the first ids of their kinds
NESTED = 0.25  # how likely an argument is a list itself, above the greatest depth
TRIES = 100_000  # expressions drawn before a range of lengths is given up: one in 10⁴ is found all but surely


def evaluate(words: Sequence[str]) -> int:
    """What an expression comes to, 0 … 9: `[MAX 2 9 [MIN 4 7 ] 0 ]` is 9.

    MIN and MAX of the arguments, MED their median (of an even number the mean of both in the middle, rounded down), SM
    their sum modulo 10. Raises ValueError, with the position, for what is no expression.

    >>> evaluate("[MED 1 [SM 8 9 4 ] 2 6 ]".split())
    1
    """
    lists: list[tuple[str, list[int]]] = []
    for place, word in enumerate(words, start=1):
        if word in OPERATORS:
            lists.append((word, []))
            continue
        if word == END:
            if not lists or not lists[-1][1]:
                raise ValueError(f"{word!r} at position {place} ends {'a list of nothing' if lists else 'no list'}")
            value = _apply(*lists.pop())
        elif len(word) == 1 and word in "0123456789":
            value = int(word)
        else:
            raise ValueError(f"{word!r} at position {place} is no digit, {' '.join(OPERATORS)} or {END}")
        if lists:
            lists[-1][1].append(value)
        elif place < len(words):
            raise ValueError(f"the expression ends at position {place}, and {len(words)} words are given")
        else:
            return value
    raise ValueError(
        f"the expression is not ended: {len(lists)} lists are open" if lists else "the expression is empty"
    )


def _apply(operator: str, values: list[int]) -> int:
    if operator == "[SM":
        return sum(values) % 10
    if operator == "[MED":
        values = sorted(values)
        return (values[(len(values) - 1) // 2] + values[len(values) // 2]) // 2
    return min(values) if operator == "[MIN" else max(values)


def longest(depth: int, arguments: int) -> int:
    """The words of the longest expression of that depth, where lists have up to so many arguments.

    >>> longest(2, 10), longest(3, 10)
    (12, 122)
    """
    return 1 if depth == 1 else 2 + arguments * longest(depth - 1, arguments)


def draw(
    random: np.random.Generator, size: int, lengths: tuple[int, int], depth: int, arguments: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Ids [N longest] int32 padded behind, how many of each are words [N], and what they come to [N] int32.

    The published grammar (Long Range Arena, Tay et al. 2021, and its code): a list has an operator, drawn evenly, and
    2 … `arguments` arguments, as evenly; an argument is a list with probability 1/4 and a digit otherwise, at the
    `depth`-th level always a digit. So lists nest `depth` − 1 deep. Kept are expressions of `lengths` words, at least
    and at most. Raises ValueError where none is found among `TRIES` in a row.
    """
    ids = np.zeros((size, lengths[1]), np.int32)
    counts, values = np.zeros(size, np.int32), np.zeros(size, np.int32)
    numbers = _numbers(random)
    for n in range(size):
        words = _fitting(numbers, lengths, depth, arguments)
        ids[n, : len(words)], counts[n] = words, len(words)
        values[n] = evaluate([WORDS[word] for word in words])
    return ids, counts, values


def _fitting(numbers: Iterator[float], lengths: tuple[int, int], depth: int, arguments: int) -> list[int]:
    for _ in range(TRIES):
        words = _list(numbers, lengths[1], depth, arguments)
        if words is not None and len(words) >= lengths[0]:
            return words
    raise ValueError(
        f"none of {TRIES:,} expressions of {depth=} and {arguments=} has {lengths[0]} to {lengths[1]} words: "
        "allow other lengths"
    )


def _list(numbers: Iterator[float], most: int, depth: int, arguments: int) -> list[int] | None:
    """The ids of a list, or None where it would have more than `most`."""
    words: list[int] = []
    left: list[int] = []  # the arguments that each open list still takes
    owed = 1  # the words that are to come at the least
    begins = True
    while begins or left:
        if begins:
            words.append(OPERATOR + int(next(numbers) * len(OPERATORS)))
            left.append(2 + int(next(numbers) * (arguments - 1)))
            owed += left[-1]
        elif left[-1]:
            left[-1] -= 1
            begins = len(left) < depth - 1 and next(numbers) < NESTED
            if begins:
                continue
            words.append(DIGIT + int(next(numbers) * 10))
            owed -= 1
        else:
            words.append(CLOSE)
            left.pop()
            owed -= 1
        begins = False
        if len(words) + owed > most:
            return None
    return words


def _numbers(random: np.random.Generator) -> Iterator[float]:
    """Numbers in [0, 1), a thousand drawn at a time: one by one would take longer than all the rest."""
    while True:
        yield from random.random(1024).tolist()
