"""ListOps: nested lists of operators and digits, and their values (Nangia and Bowman 2018)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

OPERATORS = ("[MIN", "[MAX", "[MED", "[SM")
END = "]"
WORDS = ("·", *(str(n) for n in range(10)), *OPERATORS, END)  # the word of each id; the first is padding
DIGIT, OPERATOR, CLOSE = 1, 11, 15  # the first id of each kind
NESTED = 0.25  # the probability that an argument is a list, above the greatest depth
TRIES = 100_000  # attempts to draw an expression of allowed length; enough if one in 10⁴ has such a length


def evaluate(words: Sequence[str]) -> int:
    """Returns the value of an expression, 0 … 9: `[MAX 2 9 [MIN 4 7 ] 0 ]` is 9.

    MIN and MAX are those of the arguments. MED is their median; for an even number of arguments, it is the mean of the
    two in the middle, rounded down. SM is their sum modulo 10.

    Raises:
      ValueError: if the words are not an expression; the message has the position.

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
                raise ValueError(f"{word!r} at position {place} closes {'an empty list' if lists else 'no list'}")
            value = _apply(*lists.pop())
        elif len(word) == 1 and word in "0123456789":
            value = int(word)
        else:
            raise ValueError(f"{word!r} at position {place} is not a digit, {' '.join(OPERATORS)} or {END}")
        if lists:
            lists[-1][1].append(value)
        elif place < len(words):
            raise ValueError(f"the expression ends at position {place}, but there are {len(words)} words")
        else:
            return value
    raise ValueError(
        f"the expression is incomplete; number of unclosed lists: {len(lists)}" if lists else "the expression is empty"
    )


def _apply(operator: str, values: list[int]) -> int:
    """Applies an operator to its arguments."""
    if operator == "[SM":
        return sum(values) % 10
    if operator == "[MED":
        values = sorted(values)
        return (values[(len(values) - 1) // 2] + values[len(values) // 2]) // 2
    return min(values) if operator == "[MIN" else max(values)


def longest(depth: int, arguments: int) -> int:
    """Returns the number of words of the longest expression of a depth, if lists have at most `arguments` arguments.

    >>> longest(2, 10), longest(3, 10)
    (12, 122)
    """
    return 1 if depth == 1 else 2 + arguments * longest(depth - 1, arguments)


def draw(
    random: np.random.Generator, size: int, lengths: tuple[int, int], depth: int, arguments: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Draws expressions from the published grammar (Long Range Arena, Tay et al. 2021, and its code).

    A list has a uniformly random operator and a uniformly random number of arguments in 2 … `arguments`. An argument is
    a list with probability 1/4, and otherwise a digit. At level `depth`, it is always a digit, so lists nest `depth` −
    1 deep. Expressions of other lengths than allowed are rejected.

    Args:
      random: the generator.
      size: number of expressions N.
      lengths: the least and the largest number of words.
      depth: the largest depth.
      arguments: the largest number of arguments of a list.

    Returns:
      The ids [N lengths[1]] int32 with padding at the end, the number of words of each expression [N] int32, and its
      value [N] int32.

    Raises:
      ValueError: if none of `TRIES` expressions in a row has an allowed length.
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
    """Returns the ids of an expression of allowed length."""
    for _ in range(TRIES):
        words = _list(numbers, lengths[1], depth, arguments)
        if words is not None and len(words) >= lengths[0]:
            return words
    raise ValueError(
        f"none of {TRIES:,} expressions with {depth=} and {arguments=} has {lengths[0]} to {lengths[1]} words; "
        "allow other lengths"
    )


def _list(numbers: Iterator[float], most: int, depth: int, arguments: int) -> list[int] | None:
    """Returns the ids of a random list, or None if it would have more than `most` words."""
    words: list[int] = []
    left: list[int] = []  # the number of arguments that each open list still needs
    owed = 1  # the least number of words still to come
    begins = True
    while begins or left:
        if begins:
            words.append(OPERATOR + int(next(numbers) * len(OPERATORS)))
            left.append(2 + int(next(numbers) * (arguments - 1)))
            # The new list replaces an argument. Its closing bracket takes the place of that word.
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
    """Yields numbers in [0, 1). They are drawn 1,024 at a time, because drawing single numbers would be slow."""
    while True:
        yield from random.random(1024).tolist()
