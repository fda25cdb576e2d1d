"""Words and how they are spoken: what the readers of pronunciations have in common."""

from collections.abc import Callable, Iterable, Iterator

from attnlab.data import files
from attnlab.data.example import Example, shuffled
from attnlab.data.files import DataError, contents, text

Phones = tuple[str, ...]
Words = dict[str, list[Phones]]  # a word's pronunciations, in the order of the file
Rows = Callable[[str, str, list[int] | None], Iterator[tuple[str, Phones]]]


def group(rows: Iterable[tuple[str, Phones]], path: str) -> Words:
    """The pronunciations of each word, each once; DataError naming `path` where there are no words."""
    words: Words = {}
    for word, phones in rows:
        known = words.setdefault(word, [])
        if phones not in known:
            known.append(phones)
    if not words:
        raise DataError(f"{path} holds no words")
    return words


def examples(words: Words) -> list[Example]:
    """A word an example, each of its pronunciations a target, in a fixed order that is not the alphabet's."""
    return shuffled(Example(word, tuple(pronunciations)) for word, pronunciations in words.items())


def asked(path: str, rows: Rows, half: list[int] | None = None) -> list[Example]:
    """The examples of a file as `own` reads it; of one in which each line is one word, words without targets."""
    content = text(contents(files.own(path), path.endswith(".gz")), path).removeprefix("\ufeff")
    fields = [found for line in content.split("\n") if (found := line.split())]
    if not fields:
        raise DataError(f"{path} holds no words")
    if any(len(found) > 1 for found in fields):
        return own(path, rows, half)
    return [Example(word, ()) for (word,) in fields]


def own(path: str, rows: Rows, half: list[int] | None = None) -> list[Example]:
    """The examples of a user's file (gzipped where its name ends in .gz), which `rows(text, path, half)` reads.

    A byte-order mark is not of its first word. Lines with a word or phones alone are refused, or, where a list `half`
    is given, left out, and their numbers added to it. Raises DataError where the file is missing, damaged, not UTF-8 or
    not of the format.
    """
    content = text(contents(files.own(path), path.endswith(".gz")), path).removeprefix("\ufeff")
    return examples(group(rows(content, path, half), path))
