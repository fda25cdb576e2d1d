import unicodedata

import pytest

from attnlab.data.io.files import DataError
from attnlab.data.text import sigmorphon


def test_rows_are_words_and_phones_in_nfc():
    rows = list(sigmorphon.rows("ha\u0301z\th a\u02d0 z\r\n\nfa\tf ɒ", "x"))
    assert rows == [("h\u00e1z", ("h", "a\u02d0", "z")), ("fa", ("f", "ɒ"))]


@pytest.mark.parametrize("row", ["ház h aː z", "ház\th aː z\textra", "ház\t", "\th aː z", "ház"])
def test_a_row_without_its_two_columns_is_named_with_its_line(row):
    with pytest.raises(DataError, match=r"own\.tsv, line 3: expected a word, a tab and its phones, got "):
        list(sigmorphon.rows(f"fa\tf ɒ\n\n{row}\n", "own.tsv"))


@pytest.mark.parametrize("language", sigmorphon.LANGUAGES)
def test_the_published_parts(published, language):
    published("sigmorphon2020_g2p")
    parts = sigmorphon.parts(language)
    assert {part: len(examples) for part, examples in parts.items()} == {
        "train": 3_600,
        "valid": 450,
        "test": 450,
    }
    words = [example.source for examples in parts.values() for example in examples]
    assert len(set(words)) == 4_500
    assert all(unicodedata.is_normalized("NFC", word) and word.strip() == word for word in words)
    assert all(len(example.targets) == 1 and all(example.targets[0]) for example in parts["test"])
