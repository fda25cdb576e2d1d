import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from attnlab.console.escape import plain

TURNING = [chr(n) for n in (*range(0x202A, 0x202F), *range(0x2066, 0x206A))]


@given(st.text())
def test_control_characters_are_escaped_and_the_rest_is_kept(text):
    shown = plain(text)
    assert not any(unicodedata.category(letter) in ("Cc", "Cs", "Zl", "Zp") for letter in shown)
    assert not set(TURNING) & set(shown)
    assert len(shown.splitlines()) <= 1
    assert plain(shown) == shown
    left = iter(shown)
    assert all(letter in left for letter in text if letter.isprintable())


@pytest.mark.parametrize("letter", [*map(chr, [*range(0x20), *range(0x7F, 0xA0)]), *TURNING, "\u2028", "\u2029"])
def test_every_control_and_direction_override_is_escaped(letter):
    shown = plain(f"a{letter}b")
    assert (shown[0], shown[-1]) == ("a", "b")
    assert letter not in shown
    assert shown.isprintable()
    assert shown != "ab"


@pytest.mark.parametrize("letter", ["\u200b", "\ufeff", "\u00ad", "\U000e0041", "\u2060", "\ud800"])
def test_invisible_characters_are_escaped(letter):
    assert plain(f"a{letter}b") == f"a⟨U+{ord(letter):04X}⟩b"


@pytest.mark.parametrize(
    "text",
    [
        "é",
        "e\u0301",
        "न्\u200dन",
        "می\u200cخواهم",
        "\u200fא\u200e",
        "👨\u200d👩\u200d👧",
        "\u0600١",
        "a\u00a0b",
        "日本",
        "\ufe0f",
    ],
)
def test_joiners_that_scripts_need_are_kept(text):
    assert plain(text) == text


def test_distinct_texts_stay_distinct():
    assert len({plain(chr(n)) for n in range(0x100)}) == 0x100
