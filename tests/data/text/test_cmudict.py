import gzip
from collections import Counter

import pytest

from attnlab.data.io.files import DataError
from attnlab.data.text import cmudict


def test_rows_without_stress_variants_and_comments():
    dictionary = (
        "# a comment\n\na AH0\na(2) EY1\naalto AA1 L T OW2 # name, finnish\ncan't K AE1 N T\n(paren P ER0 EH1 N\n"
    )
    assert list(cmudict.rows(dictionary, "x")) == [
        ("a", ("AH",)),
        ("a", ("EY",)),
        ("aalto", ("AA", "L", "T", "OW")),
        ("can't", ("K", "AE", "N", "T")),
        ("(paren", ("P", "ER", "EH", "N")),
    ]


def test_rows_of_your_own_words():
    # Version 0.7b of the dictionary has capital letters and other comments. Tones are not stress marks.
    own = ";;; # a comment\r\nHELLO(1)  HH AH0 L OW1\r\nNew York\tN UW1 Y AO1 R K\nmai\tm ai2 n1 0\n"
    assert list(cmudict.rows(own, "own")) == [
        ("hello", ("HH", "AH", "L", "OW")),
        ("new york", ("N", "UW", "Y", "AO", "R", "K")),
        ("mai", ("m", "ai2", "n1", "0")),
    ]
    for line, problem in (("New York\t", "'New York' has no phones"), ("\tHH AH0", "there is no word before the tab")):
        with pytest.raises(DataError, match=f"own, line 1: {problem}"):
            list(cmudict.rows(line, "own"))
        assert not list(cmudict.rows(line, "own", half := []))
        assert half == [1]


def test_a_word_without_phones_is_named_with_its_line():
    with pytest.raises(DataError, match=r"own\.dict, line 3: 'c' has no phones"):
        list(cmudict.rows("a AH0\nb B IY1\nc # C\n", "own.dict"))


def test_the_rule_of_the_split():
    assert Counter(cmudict.part_of(n) for n in range(2000)) == {"train": 1700, "test": 200, "valid": 100}
    assert [cmudict.part_of(n) for n in (16, 17, 18, 19, 20)] == ["train", "test", "test", "valid", "train"]


def test_the_published_dictionary_in_its_split(published):
    folder = published("cmudict")
    parts = cmudict.parts()
    sizes = {part: len(examples) for part, examples in parts.items()}
    assert sizes == {"train": 107_146, "valid": 6_302, "test": 12_604}
    examples = [example for part in parts.values() for example in part]
    assert len({phone for example in examples for target in example.targets for phone in target}) == 39
    # The rule gives exactly the split that is stored next to the dictionary.
    derived = {example.source: part for part, examples in parts.items() for example in examples}
    rows = gzip.decompress((folder / "split.tsv.gz").read_bytes()).decode().splitlines()
    split = dict(row.split("\t") for row in rows)
    assert derived == {word: {"dev": "valid"}.get(part, part) for word, part in split.items()}
    # Any prefix is a sample of the alphabet.
    assert len({example.source[0] for example in parts["test"][:200]}) > 15
