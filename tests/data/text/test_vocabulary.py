import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from attnlab.data.io.files import DataError
from attnlab.data.text.vocabulary import BEGIN, END, PAD, Vocabulary

symbols = st.text(min_size=1, max_size=3)


def test_the_reserved_ids():
    assert (PAD, BEGIN, END) == (0, 1, 2)
    assert Vocabulary(("a",)).encode("a") == [3]


def test_of_sequences_is_sorted_whatever_their_order():
    assert Vocabulary.of(["ba", "ac"]).symbols == ("a", "b", "c")
    assert Vocabulary.of(["ac", "ba"]) == Vocabulary.of(["ba", "ac"])
    assert Vocabulary.of([("AH", "B"), ("AA",)]).symbols == ("AA", "AH", "B")


@given(st.lists(st.lists(symbols, max_size=6), min_size=1, max_size=6))
def test_decode_undoes_encode(sequences):
    known = Vocabulary.of(sequences)
    for sequence in sequences:
        ids = known.encode(sequence)
        assert all(3 <= n < known.size for n in ids)
        assert known.decode([BEGIN, *ids, END, PAD, 3, 3]) == tuple(sequence)
    assert Vocabulary.from_json(json.loads(json.dumps(known.to_json()))) == known


def test_decode_takes_numpys_integers():
    assert Vocabulary(("a", "b")).decode(np.array([4, 3, 2, 4], np.int32)) == ("b", "a")


@pytest.mark.parametrize("n", [-1, 5])
def test_decode_refuses_ids_beyond_the_size(n):
    with pytest.raises(ValueError, match=f"id {n} must be in 0 … 4"):
        Vocabulary(("a", "b")).decode([n])


def test_unknown_symbols_are_named_with_position_and_code_point():
    with pytest.raises(DataError) as error:
        Vocabulary.of(["abc"]).encode("aбcñ")
    line = str(error.value)
    assert '"б" (U+0431) at position 2' in line
    assert '"ñ" (U+00F1) at position 4' in line
    assert "seen in training (3): a b c" in line
    assert "\n" not in line


def test_many_unknown_symbols_are_counted():
    with pytest.raises(DataError, match="and 2 more") as error:
        Vocabulary.of(["abc"]).encode("uvwxyz")
    assert '"y"' not in str(error.value)


def test_a_control_character_breaks_no_line():
    with pytest.raises(DataError) as error:
        Vocabulary.of(["abc"]).encode("a\n")
    assert "\n" not in str(error.value)
    assert "U+000A" in str(error.value)


def test_encoding_can_skip_unknown_symbols():
    assert Vocabulary.of(["abc"]).known("xaybz") == ["a", "b"]


@pytest.mark.parametrize("wrong", [("a", "a"), ("a", "")])
def test_symbols_must_be_unique_and_not_empty(wrong):
    with pytest.raises(ValueError, match="must be unique"):
        Vocabulary(wrong)


def test_a_saved_vocabulary_is_read():
    kept = Vocabulary.of(["añ字"])
    assert kept.to_json() == ["a", "ñ", "字"]
    assert Vocabulary.from_json(kept.to_json()) == kept
    # The same symbols in another order have other ids.
    assert Vocabulary.from_json(kept.to_json()[::-1]) != kept


@pytest.mark.parametrize("content", [None, "abc", {}, [1], ["a", "a"], ["a", ""]])
def test_an_invalid_vocabulary_is_refused(content):
    with pytest.raises(DataError, match=r"^vocabulary\.json"):
        Vocabulary.from_json(content, "vocabulary.json")
