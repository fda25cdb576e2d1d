"""The CMU Pronouncing Dictionary: English words and their pronunciations in ARPAbet."""

import re
from collections.abc import Iterator

from attnlab.data.io.files import DataError, text
from attnlab.data.io.published import Source, read
from attnlab.data.text.corpus import SKIPPING
from attnlab.data.text.example import Parts
from attnlab.data.text.words import Phones, Words, examples, group

# The public file is plain text. A copy on disk may be gzipped, as cmudict.dict.gz; then its content is verified.
DICTIONARY = Source(
    set="cmudict",
    file="cmudict.dict",
    sha256="81917843c7f44ce2b094ac63873c2c7a4cf802040792c455ba3ca406891c3d22",
    size=3_618_488,
    url="https://raw.githubusercontent.com/cmusphinx/cmudict/74790861f652b15e4ac49015a90074ad62a27690/cmudict.dict",
)
SOURCES = (DICTIONARY,)


def parts() -> Parts:
    """Returns the parts of the dictionary, one example per word.

    There are 107,146 words for training, 6,302 for validation and 12,604 for test.
    """
    content = text(read(DICTIONARY), DICTIONARY.file)
    split: dict[str, Words] = {"train": {}, "valid": {}, "test": {}}
    words = group(rows(content, DICTIONARY.file), DICTIONARY.file)
    for n, (word, pronunciations) in enumerate(words.items()):
        split[part_of(n)][word] = pronunciations
    return {part: examples(words) for part, words in split.items()}


def part_of(index: int) -> str:
    """Returns the part of the word at this index in the file. This is the rule of cmusphinx/g2p-seq2seq."""
    return {19: "valid", 18: "test", 17: "test"}.get(index % 20, "train")


def rows(dictionary: str, path: str, half: list[int] | None = None) -> Iterator[tuple[str, Phones]]:
    """Yields the word and the phones of each line, without stress marks.

    A line is a word and its phones. A variant pronunciation has `(2)` and so on after the word. A comment starts with
    `#`.

    Args:
      dictionary: the text.
      path: the file it comes from, used in messages.
      half: if given, words without phones are left out, and their line numbers are appended to this list.

    Raises:
      DataError: if a word has no phones and `half` is not given. The message names the path and the line.
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
