"""The CMU Pronouncing Dictionary: English words and how they are spoken, in ARPAbet."""

import re
from collections.abc import Iterator

from attnlab.data.example import Parts
from attnlab.data.files import DataError, Source, read, text
from attnlab.data.parallel import SKIPPING
from attnlab.data.words import Phones, Words, examples, group

# The public file is plain text. A copy on disk may be gzipped, as cmudict.dict.gz: its content is verified.
DICTIONARY = Source(
    set="cmudict",
    file="cmudict.dict",
    sha256="81917843c7f44ce2b094ac63873c2c7a4cf802040792c455ba3ca406891c3d22",
    size=3_618_488,
    url="https://raw.githubusercontent.com/cmusphinx/cmudict/74790861f652b15e4ac49015a90074ad62a27690/cmudict.dict",
)
SOURCES = (DICTIONARY,)


def parts() -> Parts:
    """The dictionary's parts, a word an example: 107,146 to train with, 6,302 to validate, 12,604 to test."""
    content = text(read(DICTIONARY), DICTIONARY.file)
    split: dict[str, Words] = {"train": {}, "valid": {}, "test": {}}
    words = group(rows(content, DICTIONARY.file), DICTIONARY.file)
    for n, (word, pronunciations) in enumerate(words.items()):
        split[part_of(n)][word] = pronunciations
    return {part: examples(words) for part, words in split.items()}


def part_of(index: int) -> str:
    """The part of the word with this index in the file's order: the rule of cmusphinx/g2p-seq2seq."""
    return {19: "valid", 18: "test", 17: "test"}.get(index % 20, "train")


def rows(dictionary: str, path: str, half: list[int] | None = None) -> Iterator[tuple[str, Phones]]:
    """Each line's word and its phones, without stress.

    A line is a word, `(2)` and so on where it is a variant, and phones; a comment starts with `#`. Where a list `half`
    is given, words without phones are left out, and the numbers of their lines added to it. Raises DataError naming the
    path and the line where a word has no phones and that is refused.
    """
    for number, line in enumerate(dictionary.split("\n"), start=1):
        fields = line.partition(" #")[0].split()
        if not fields or fields[0].startswith("#"):
            continue
        if len(fields) == 1 and half is not None:
            half.append(number)
            continue
        if len(fields) == 1:
            raise DataError(f"{path}, line {number}: {fields[0]!r} has no phones{SKIPPING}")
        yield re.sub(r"\(\d+\)$", "", fields[0]), tuple(phone.rstrip("012") for phone in fields[1:])
