from collections import Counter

import pytest

from attnlab.data.io.files import DataError
from attnlab.data.text import sentences
from attnlab.data.text.corpus import Limit
from attnlab.data.text.example import Example

LINES = "good a fine film\nbad\tdull  and long\n\ngood so short\n"
EXAMPLES = [Example("a fine film", ("good",)), Example("dull and long", ("bad",)), Example("so short", ("good",))]


def test_the_questions_of_trec(published):
    published("text_classification")
    parts = sentences.trec()
    assert {part: len(examples) for part, examples in parts.items()} == {"train": 4_907, "valid": 545, "test": 500}
    count = lambda *names: Counter(example.targets[0] for name in names for example in parts[name])
    # Li and Roth give these counts, which shows that the numbers in the files are these classes.
    assert count("train", "valid") == {"ABBR": 86, "DESC": 1162, "ENTY": 1250, "HUM": 1223, "LOC": 835, "NUM": 896}
    assert count("test") == {"ABBR": 9, "DESC": 138, "ENTY": 94, "HUM": 65, "LOC": 81, "NUM": 113}
    assert parts["train"][0] == Example("How did serfdom develop in and then leave Russia ?", ("DESC",))
    assert any("sister\xf0city" in str(example.source) for part in parts.values() for example in part)


def test_the_reviews_of_sst2(published):
    published("text_classification")
    parts = sentences.sst2()
    assert {part: len(examples) for part, examples in parts.items()} == {"train": 6_920, "valid": 872, "test": 1_821}
    assert Counter(example.targets[0] for example in parts["test"]) == {"negative": 912, "positive": 909}
    assert any("béart" in str(example.source) for example in parts["train"])


@pytest.mark.parametrize("name", ["own.txt", "own.txt.gz"])
@pytest.mark.parametrize("content", [LINES, "\ufeff" + LINES.replace("\n", "\r\n")])
def test_the_first_word_of_a_line_is_its_class(write, name, content):
    path = write(name, content)
    corpus = sentences.corpus(path)
    assert corpus.examples == EXAMPLES
    assert corpus.lines == [1, 2, 4]
    assert corpus.notes() == [f"{path}: 1 line (3) is empty and skipped"]
    assert sentences.corpus(path, classes=False).examples[0].source == "good a fine film"


def test_a_class_of_several_words_ends_with_a_tab(write):
    path = write("own.txt", "sci tech\tnew chip\tout\n\nnot, bad \ta  fine film\n")
    assert sentences.corpus(path).examples == [
        Example("new chip out", ("sci tech",)),
        Example("a fine film", ("not, bad",)),
    ]
    for content in ("good\ta film\nbad a film\n", "good\ta film\n\ta film\n"):
        with pytest.raises(DataError, match=r"own\.txt, line 2: expected a class before a tab"):
            sentences.corpus(write("own.txt", content))
    # If the first line has no tab, a tab is ordinary white space.
    assert sentences.corpus(write("own.txt", "good a film\nbad a\tfilm\n")).examples[1] == Example("a film", ("bad",))
    for mark in ",;":
        with pytest.raises(
            DataError,
            match=rf"line 1: the class 'pos{mark}a' contains a comma or a semicolon; "
            "end the class with a space or a tab",
        ):
            sentences.corpus(write("own.txt", f"pos{mark}a fine film\n"))


@pytest.mark.parametrize("halves", ["sci tech\t\n\tnew chip\n", "\tnew chip\nsci tech\t \n"])
def test_lines_with_only_a_class_or_a_sentence_can_be_skipped(write, halves):
    path = write("own.txt", f"{halves}sci tech\tnew chip\n\ngood\tfine\n")
    found = sentences.corpus(path, Limit(empty="skip"))
    assert found.examples == [Example("new chip", ("sci tech",)), Example("fine", ("good",))]
    assert found.lines == [3, 5]
    assert found.notes() == [
        f"{path}: 1 line (4) is empty and skipped",
        f"{path}: 2 lines (1, 2) with one empty side are skipped",
    ]
    with pytest.raises(DataError, match=r"own\.txt, line 1: .*; task\.empty=skip "):
        sentences.corpus(path)
    with pytest.raises(DataError, match=r"own\.txt contains no sentences: 2 lines \(1, 2\) with one empty side are"):
        sentences.corpus(write("own.txt", "bad\ngood\n"), Limit(empty="skip"))


def test_classes_that_are_equal_in_nfc_are_one(write):
    for between in " \t":
        rows = sentences.corpus(write("own.txt", f"gru\u0308n{between}a b\ngr\u00fcn{between}c\n")).examples
        assert [row.targets for row in rows] == [("gr\u00fcn",)] * 2


def test_a_class_alone_is_no_sentence(write):
    with pytest.raises(DataError, match=r"own\.txt, line 2: there is no sentence after the class 'bad'"):
        sentences.corpus(write("own.txt", "good fine\nbad \n"))
    with pytest.raises(DataError, match=r"own\.txt contains no sentences"):
        sentences.corpus(write("own.txt", "\n \n"))


def test_another_encoding_is_refused(write):
    latin = write("own.txt", "gut sch\xf6n\n".encode("latin-1"))
    with pytest.raises(
        DataError, match=r"own\.txt is not UTF-8: byte 7 is 0xf6; the encoding latin-1 accepts any byte$"
    ):
        sentences.corpus(latin)
    assert sentences.corpus(latin, encoding="latin-1").examples == [Example("sch\xf6n", ("gut",))]
    for content, line in (
        (b"\xef\xbb\xbfa b\n", "begins with the byte-order mark of UTF-8"),
        ("a b".encode("utf-16"), "byte 3 is 0x00; save it as UTF-8, not UTF-16$"),
    ):
        with pytest.raises(DataError, match=line):
            sentences.corpus(write("own.txt", content), encoding="latin-1")
    with pytest.raises(ValueError, match=r"encoding='latin1' is not known; nearest: 'latin-1'"):
        sentences.corpus(latin, encoding="latin1")


def test_too_long_lines_are_refused(write):
    path = write("own.txt", LINES)
    with pytest.raises(DataError, match=r"own\.txt, line 1: length 3 exceeds 2"):
        sentences.corpus(path, Limit(2))
    cut = sentences.corpus(path, Limit(2, "truncate"))
    assert [example.source for example in cut.examples] == ["a fine", "dull and", "so short"]
    assert cut.notes()[1] == f"{path}: 2 lines (1, 2) are longer than 2 and truncated"
    assert sentences.corpus(path, Limit(2, "skip")).lines == [4]


def test_classes_of_the_parts_are_compared(write):
    train, other = sentences.corpus(write("train.txt", LINES)), sentences.corpus(write("other.txt", "good x\n"))
    assert sentences.compared({"train": train, "valid": train, "test": other}) == [
        f"{other.path}: no line is of class 'bad'"
    ]
    with pytest.raises(DataError, match=r"other\.txt: all lines are of class 'good'; at least 2 classes are needed"):
        sentences.compared({"train": other, "valid": train, "test": train})
    strange = sentences.corpus(write("strange.txt", "bad x\n\nBad y\n"))
    with pytest.raises(
        DataError, match=r"strange\.txt, line 3: class 'Bad' is not one of the 2 classes of .*: bad good$"
    ):
        sentences.compared({"train": train, "valid": train, "test": strange})


def test_a_heading_among_the_sentences_is_noted(write):
    def notes(rows: str) -> list[str]:
        found = sentences.corpus(write("headed.txt", rows))
        return sentences.compared(dict.fromkeys(("train", "valid", "test"), found))

    rows = "good\ta fine film\nbad\tdull\nbad\tno\ngood\tyes\n"
    (asked,) = notes("\nlabel\tsentence\n" + rows)
    assert asked.endswith("line 2: class 'label' is on no other line; if this line is a heading, remove it")
    assert notes(rows) == notes("good\tx\nbad\ty\n") == notes(rows + "odd\tlast\n") == []


@pytest.mark.parametrize(
    ("typed", "read"),
    [
        ("What's the capital of the U.S.?", "What 's the capital of the U.S. ?"),
        ("I can't, won't -- wouldn't!", "I ca n't , wo n't -- would n't !"),
        ("Who leads St. Louis' scar-faced team?", "Who leads St. Louis ' scar-faced team ?"),
        ("A (short) film", "A -lrb- short -rrb- film"),
        ("It cost 1,000.50 dollars...", "It cost 1,000.50 dollars ..."),
    ],
)
def test_typed_sentences_are_tokenised_as_published(typed, read):
    assert sentences.plain(typed) == read
    assert sentences.plain(read) == read


def test_most_published_sentences_are_unchanged(published):
    published("text_classification")
    for parts in (sentences.trec(), sentences.sst2()):
        lines = [str(example.source) for example in parts["test"]]
        assert sum(sentences.plain(line) == line for line in lines) > 0.96 * len(lines)


def test_every_sentence_too_long_is_reported(write):
    with pytest.raises(
        DataError, match=r"a\.txt contains no sentences of length at most 1: 1 line \(1\) is longer and skipped"
    ):
        sentences.corpus(write("a.txt", "up one two\n"), Limit(1, "skip"))
