import json
import os
import subprocess
import sys
import unicodedata

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from attnlab.data.io.files import DataError
from attnlab.data.text import codec as codecs
from attnlab.data.text import multi30k, units
from attnlab.data.text.units import UNITS, Bpe, Bytes, Characters, Words
from attnlab.data.text.vocabulary import BEGIN, END, PAD, RESERVED

# Latin with marks of its own and combining ones, Arabic, Devanagari, Japanese, emoji of one code point and of
# several, a tab, a no-break space, the mark that others write for a space, and what JSON escapes.
LINES = [
    "der kleine hund läuft .",
    "der große hund , der läuft , bellt &quot; laut &quot; .",
    "نص عربي من اليمين",
    "हिन्दी में एक वाक्य",
    "日本語の文です。",
    '👩\u200d🚀 🎉 a\tb\u00a0c ▁ \\ " \x07 x\u0323\u0302',
]
SEEN = "".join(sorted({*codecs.normalize("".join(LINES))}))
KINDS = [*UNITS.values(), Bpe(size=200, punctuation=True), Bpe(size=180, lower=True), Characters(lower=True)]
CODECS = [kind.fit(LINES) for kind in KINDS]
BPE = [codec for codec in CODECS if isinstance(codec.units, Bpe)]
texts = st.text(SEEN, max_size=30)


@pytest.mark.parametrize("codec", CODECS, ids=lambda codec: repr(codec.units))
def test_fitted_text_is_restored(codec):
    lower = getattr(codec.units, "lower", False)
    for line in LINES:
        written = line if isinstance(codec.units, Bytes) else codecs.normalize(line, lower)
        expected = " ".join(written.split()) if isinstance(codec.units, Words) else written
        ids = codec.encode(line)
        assert all(RESERVED <= n < codec.vocabulary.size for n in ids)
        assert codec.decode([BEGIN, *ids, END, ids[0], PAD]) == expected


@pytest.mark.parametrize("codec", [*BPE, UNITS["characters"].fit(LINES)], ids=lambda codec: repr(codec.units))
@given(texts)
@example("")
@example(" ")
@example("  der  hund ")
@example("\tder\t\tহund"[:5])
@example("▁ der▁hund")
def test_any_text_of_known_characters_is_restored(codec, text):
    written = codecs.normalize(text, getattr(codec.units, "lower", False))
    # Marks that were seen on one letter may make one with another that was not.
    if set(written) <= {*SEEN}:
        assert codec.decode(codec.encode(text)) == written


@given(st.text())
@example("👩\u200d🚀 e\u0301 \u202eשלום\u202c \x00\x07\x85\u2028")
def test_bytes_restore_any_text(text):
    codec = Bytes().fit()
    ids = codec.encode(text)
    assert len(ids) == len(text.encode())
    assert codec.decode(ids) == text
    assert codec.decode(codec.encode(text, known=True)) == text


def test_bytes_are_256_and_bytes_of_no_character_are_shown():
    codec = Bytes().fit()
    assert codec.vocabulary.size == 3 + 256
    assert codec == Bytes().fit(LINES)
    assert codec.vocabulary.decode(codec.encode("aé")) == ("a", "0xc3", "0xa9")
    assert codec.decode([codec.encode("é")[0], *codec.encode("a")]) == "\ufffda"


def test_an_unpaired_surrogate_is_refused():
    with pytest.raises(DataError, match=r"U\+D800 at position 2"):
        Bytes().fit().encode("a\ud800")
    for codec in (CODECS[0], *BPE):
        with pytest.raises(DataError, match=r"never seen in training: .*U\+D800\) at position 2"):
            codec.encode("e\ud800")


def test_characters_and_words_by_hand():
    assert Characters().fit(["ba"]).encode("ab") == [3, 4]
    assert Words().fit(["b  a", "c\n"]).vocabulary.symbols == ("a", "b", "c")
    assert Words().fit(["b a"]).decode([4, 3, 3]) == "b a a"


def test_merges_by_hand():
    # " aa", " ab", " ab": the pair " "+"a" occurs three times, then " a"+"b" twice, and no other twice.
    codec = Bpe(size=100).fit(["aa ab ab"])
    assert codec.vocabulary.symbols == (" ", "a", "b", " a", " ab")
    assert codec.merges == ((" ", "a"), (" a", "b"))
    assert codec.vocabulary.decode(codec.encode("ab aa b")) == (" ab", " a", "a", " ", "b")


def test_the_first_word_is_encoded_like_any_other():
    codec = Bpe(size=60).fit(["der hund und der hund"] * 4)
    assert codec.encode("hund der hund")[0] == codec.encode("hund der hund")[-1]


@pytest.mark.parametrize(("size", "ids"), [(90, 90), (120, 120), (150, 133)])
def test_the_size_counts_every_id_and_merges_end_with_the_pairs(size, ids):
    lines = ["abc abd", "abcd abcd", "".join(map(chr, range(0x4E00, 0x4E00 + 60)))] * 30
    codec = Bpe(size=size).fit(lines)
    assert codec.vocabulary.size == ids
    assert len(codec.vocabulary.symbols) == len({*codec.vocabulary.symbols}) == ids - RESERVED


def test_an_alphabet_larger_than_the_size_is_refused():
    letters = "".join(map(chr, range(0x4E00, 0x4E00 + 800)))
    assert Bpe(size=804).fit([letters]).encode(letters) == list(range(3, 804))
    with pytest.raises(ValueError, match="size=803 must be at least 804"):
        Bpe(size=803).fit([letters])
    codec = Characters().fit([letters])
    assert codec.decode(codec.encode(letters[::-1])) == letters[::-1]


@pytest.mark.parametrize("size", [3, 0, -1, 2**31, 1.5, True, "10"])
def test_the_size_must_be_a_number_of_symbols(size):
    with pytest.raises(ValueError, match="size="):
        Bpe(size=size)


def test_merges_stay_inside_words_and_punctuation_can_be_separate():
    lines = ["Hund. T-Shirt. Hund. T-Shirt."] * 9
    symbols = Bpe(size=100).fit(lines).vocabulary.symbols
    assert " Hund." in symbols
    assert not any(" " in symbol[1:] for symbol in symbols)
    apart = Bpe(size=100, punctuation=True).fit(lines)
    assert not any(any(map(str.isalpha, symbol)) and {*symbol} & {*".-"} for symbol in apart.vocabulary.symbols)
    assert apart.vocabulary.decode(apart.encode("T-Shirt. Hund")) == (" T", "-", "Shirt", ".", " Hund")


def test_lower_case_of_equal_texts_is_equal():
    codec = Bpe(size=60, lower=True).fit(["Ein Hund"] * 3)
    assert codec.encode("EIN HUND") == codec.encode("ein hund")
    assert codec.decode(codec.encode("EIN HUND")) == "ein hund"


@pytest.mark.parametrize("codec", [CODECS[0], *BPE], ids=lambda codec: repr(codec.units))
def test_two_unicode_forms_of_a_letter_are_equal(codec):
    apart = unicodedata.normalize("NFD", "läuft")
    assert apart != "läuft"
    assert codec.encode(apart) == codec.encode("läuft")


@pytest.mark.parametrize("codec", [CODECS[0], *BPE], ids=lambda codec: repr(codec.units))
def test_characters_never_seen_are_named_or_left_out(codec):
    with pytest.raises(DataError) as error:
        codec.encode("der жhund ř")
    line = str(error.value)
    assert '"ж" (U+0436) at position 5' in line
    assert '"ř" (U+0159) at position 11' in line
    assert codec.encode("der жhund", known=True) == codec.encode("der hund")
    assert codec.encode("ж", known=True) == []


def test_words_never_seen_are_named_or_left_out():
    codec = Words().fit(["der hund"])
    with pytest.raises(DataError, match=r'"katze" .* at position 2'):
        codec.encode("der katze")
    assert codec.decode(codec.encode("der katze hund", known=True)) == "der hund"


@pytest.mark.parametrize("kind", [Characters(), Words(), Bpe()])
@pytest.mark.parametrize("sentences", [[], ["", "  "]])
def test_there_must_be_text_to_learn_from(kind, sentences):
    with pytest.raises(DataError, match=f"the {len(sentences)} sentences contain no text"):
        kind.fit(sentences)


@pytest.mark.parametrize("codec", CODECS, ids=lambda codec: repr(codec.units))
def test_json_restores_the_tokenizer(codec):
    again = units.from_json(json.loads(json.dumps(codec.to_json(), ensure_ascii=False)))
    assert again == codec
    assert [again.encode(line) for line in LINES] == [codec.encode(line) for line in LINES]


def test_other_sentences_give_another_tokenizer():
    for kind in (Characters(), Words(), Bpe(size=300)):
        assert kind.fit(LINES) != kind.fit(LINES[:2])
    assert Bpe(size=300).fit(LINES[:2]) != Bpe(size=300, lower=True).fit(LINES[:2])


@pytest.mark.parametrize(
    ("kind", "change"),
    [
        ("bpe", {"kind": "other"}),
        ("bpe", {"kind": ["bpe"]}),
        ("bpe", {"size": "10"}),
        ("bpe", {"size": 1}),
        ("bpe", {"lower": None}),
        ("bpe", {"symbols": "abc"}),
        ("bpe", {"symbols": ["a"], "merges": []}),
        ("bpe", {"merges": None}),
        ("bpe", {"merges": [["a"]]}),
        ("bpe", {"merges": ["ab"]}),
        ("bpe", {"merges": [["b", "a"]]}),
        ("bpe", {"merges": [["q", "a"]]}),
        ("bytes", {"symbols": ["a"]}),
        ("characters", {"symbols": ["a", "a"]}),
        ("words", {"lower": 1}),
    ],
)
def test_broken_json_is_one_line_that_names_the_file(kind, change):
    content = UNITS[kind].fit(["aa ab ab"]).to_json()
    units.from_json(content)
    with pytest.raises(DataError, match=r"vocabulary\.json") as error:
        units.from_json(content | change, "vocabulary.json")
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("content", [None, [], "bpe", {}])
def test_an_invalid_tokenizer_is_refused(content):
    with pytest.raises(DataError, match=r"must be one of characters, bytes, words, bpe"):
        units.from_json(content)


LEARN = """
import hashlib, json, random
from attnlab.data.text.units import Bpe
draw = random.Random(0)
words = ["".join(draw.choices("abcdefgh", k=draw.randint(2, 7))) for _ in range(400)]
lines = [" ".join(draw.choices(words, k=12)) for _ in range(3000)]
print(hashlib.sha256(json.dumps(Bpe(size=600).fit(lines).to_json()).encode()).hexdigest())
"""


def test_the_same_sentences_give_the_same_merges_whatever_the_threads():
    def learned(threads):
        environment = os.environ | {"RAYON_NUM_THREADS": threads, "PYTHONHASHSEED": threads}
        ran = subprocess.run([sys.executable, "-c", LEARN], env=environment, capture_output=True, text=True, check=True)
        return ran.stdout

    assert len({learned(threads) for threads in ("1", "2", "5")}) == 1


def test_ten_thousand_joint_symbols_of_the_published_captions(published):
    published("multi30k")
    parts = multi30k.parts()
    codec = Bpe().fit(text for source, (target,), _ in parts["train"] for text in (source, target))
    assert codec.vocabulary.size == 10_000
    assert {" mann", " man", " ein", " the", " &apos;s"} <= {*codec.vocabulary.symbols}
    tokens = 0
    for source, (target,), _ in parts["valid"] + parts["test"]:
        for text in (source, target):
            ids = codec.encode(text)
            tokens += len(ids)
            assert codec.decode(ids) == text
    words = sum(len(text.split()) for part in ("valid", "test") for s, (t,), _ in parts[part] for text in (s, t))
    assert 1 < tokens / words < 1.2
