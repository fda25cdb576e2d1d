"""Words and their pronunciations: what the readers of pronunciation dictionaries share."""

from collections.abc import Callable, Iterable, Iterator

from attnlab.data.io.files import DataError, user_text
from attnlab.data.text.example import Example, shuffled

Phones = tuple[str, ...]
Words = dict[str, list[Phones]]  # the pronunciations of each word, in the order of the file
Rows = Callable[[str, str, list[int] | None], Iterator[tuple[str, Phones]]]  # a parser (text, path, half)


def group(rows: Iterable[tuple[str, Phones]], path: str) -> Words:
    """Groups pronunciations by word, without repetition; raises DataError if there are no words."""
    words: Words = {}
    for word, phones in rows:
        known = words.setdefault(word, [])
        if phones not in known:
            known.append(phones)
    if not words:
        raise DataError(f"{path} contains no words")
    return words


def examples(words: Words) -> list[Example]:
    """Returns one example per word, with each pronunciation a target, in a fixed random order."""
    return shuffled(Example(word, tuple(pronunciations)) for word, pronunciations in words.items())


def read_for_scoring(path: str, rows: Rows, half: list[int] | None = None) -> list[Example]:
    """Reads a file of words for inference, with their pronunciations or without.

    If every line is one word, the examples have no targets. Otherwise the file is read as by `read_user_file`.

    Args:
        path: The path of the file.
        rows: Reads the lines of a file with pronunciations.
        half: Receives the numbers of lines with one empty side. None refuses such lines.
    """
    fields = [found for line in user_text(path).split("\n") if (found := line.split())]
    if not fields:
        raise DataError(f"{path} contains no words")
    if any(len(found) > 1 for found in fields):
        return read_user_file(path, rows, half)
    return [Example(word, ()) for (word,) in fields]


def read_user_file(path: str, rows: Rows, half: list[int] | None = None) -> list[Example]:
    """Reads the words and pronunciations of a user's file.

    Args:
      path: the file, UTF-8, gzipped if its name ends in .gz. A byte-order mark is accepted.
      rows: the parser of the format, called as `rows(text, path, half)`.
      half: if given, lines with only a word or only phones are left out, and their numbers are appended to this list.
        By default such lines raise an error.

    Returns:
      The examples, one per word.

    Raises:
      DataError: if the file is missing, damaged, not UTF-8 or not of the format.
    """
    return examples(group(rows(user_text(path), path, half), path))
