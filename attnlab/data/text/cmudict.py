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
# The vowels of ARPAbet, which may have a stress mark.
VOWELS = frozenset(["AA", "AE", "AH", "AO", "AW", "AY", "EH", "ER", "EY", "IH", "IY", "OW", "OY", "UH", "UW"])


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
    """Yields the word in lower case and the phones of each line, without the stress marks of ARPAbet's vowels.

    A line is a word and its phones. If it contains a tab, the first one ends the word, which may then contain spaces. A
    variant pronunciation has `(2)` and so on after the word. A comment starts with `#`, or a line of it with `;;;`, as
    in version 0.7b of the dictionary. Digits of other phones, for example tones, are kept.

    Args:
      dictionary: the text.
      path: the file it comes from, used in messages.
      half: if given, lines with only a word or only phones are left out, and their numbers are appended to this list.

    Raises:
      DataError: if a line lacks the word or the phones and `half` is not given. The message names the path and the
        line.
    """
    for number, line in enumerate(dictionary.split("\n"), start=1):
        entry = line.partition(" #")[0].strip(" \r")
        if not entry.strip() or entry.startswith(("#", ";;;")):
            continue
        columns = entry.split("\t" if "\t" in entry else None, maxsplit=1)
        word, phones = " ".join(columns[0].split()), columns[-1].split() if len(columns) > 1 else []
        if not (word and phones) and half is not None:
            half.append(number)
            continue
        if not (word and phones):
            problem = f"{word!r} has no phones" if word else "there is no word before the tab"
            raise DataError(f"{path}, line {number}: {problem}{SKIPPING}")
        yield re.sub(r"\(\d+\)$", "", word).lower(), tuple(map(_without_stress, phones))


def _without_stress(phone: str) -> str:
    """Returns a phone without its stress mark, if it is a vowel of ARPAbet.

    >>> _without_stress("AH0"), _without_stress("i1")
    ('AH', 'i1')
    """
    return phone[:-1] if phone[-1:] in "012" and phone[:-1] in VOWELS else phone
