import gzip

import pytest

from attnlab.data.io.files import DataError
from attnlab.data.text import cmudict, sigmorphon, words


def test_pronunciations_are_grouped_and_counted_once():
    rows = [("a", ("AH",)), ("b", ("B", "IY")), ("a", ("EY",)), ("a", ("AH",))]
    assert words.group(iter(rows), "x") == {"a": [("AH",), ("EY",)], "b": [("B", "IY")]}


def test_a_file_without_words_is_named():
    with pytest.raises(DataError, match=r"mine\.tsv contains no words"):
        words.group([], "mine.tsv")


def test_your_own_file_plain_or_gzipped(tmp_path):
    table = "ház\th aː z\nfa\tf ɒ\nfa\tf aː\n"
    plain, packed = tmp_path / "own.tsv", tmp_path / "own.tsv.gz"
    plain.write_text(table, encoding="utf-8")
    packed.write_bytes(gzip.compress(table.encode()))
    examples = words.read_user_file(str(plain), sigmorphon.rows)
    assert examples == words.read_user_file(str(packed), sigmorphon.rows)
    assert {example.source: example.targets for example in examples} == {
        "ház": (("h", "aː", "z"),),
        "fa": (("f", "ɒ"), ("f", "aː")),
    }


def test_words_without_phones_can_be_skipped(tmp_path):
    own = tmp_path / "own.tsv"
    for rows, table in ((sigmorphon.rows, "fa\tf\nfa\t\n\n\tf\n"), (cmudict.rows, "fa F\nfa\n# a word\nfo(2)\n")):
        own.write_text(table)
        assert words.read_user_file(str(own), rows, half := []) == [("fa", ((table.split()[1],),), "")]
        assert half == [2, 4]
        with pytest.raises(DataError, match=r"own\.tsv, line 2: .*; task\.empty=skip "):
            words.read_user_file(str(own), rows)


def test_a_byte_order_mark_is_ignored(tmp_path):
    own = tmp_path / "own.tsv"
    own.write_text("\ufeffház\th aː z\n", encoding="utf-8")
    assert [example.source for example in words.read_user_file(str(own), sigmorphon.rows)] == ["ház"]
    own.write_text("\ufeffhaz HH AA1 Z\n", encoding="utf-8")
    assert [example.source for example in words.read_user_file(str(own), cmudict.rows)] == ["haz"]


def test_your_own_file_that_is_missing_damaged_or_of_another_encoding(tmp_path):
    with pytest.raises(DataError, match=r"none\.dict cannot be read: No such file"):
        words.read_user_file(str(tmp_path / "none.dict"), cmudict.rows)
    packed = tmp_path / "cut.dict.gz"
    packed.write_bytes(gzip.compress(b"a AH0\n" * 1000)[:-9])
    with pytest.raises(DataError, match=r"cut\.dict\.gz is truncated"):
        words.read_user_file(str(packed), cmudict.rows)
    latin = tmp_path / "latin.tsv"
    latin.write_bytes("né\tn e\n".encode("latin-1"))
    with pytest.raises(DataError, match=r"latin\.tsv is not UTF-8: byte 1 is 0xe9"):
        words.read_user_file(str(latin), sigmorphon.rows)
