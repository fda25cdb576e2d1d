import json
import os
import subprocess
import sys
import unicodedata

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from attnlab.data.io.files import DataError
from attnlab.data.text import multi30k, units
from attnlab.data.text.tokenizer import normalize
from attnlab.data.text.units import UNITS, Bpe, Bytes, Characters, Words
from attnlab.data.text.vocabulary import BEGIN, END, PAD, RESERVED

# Latin with precomposed and combining marks, Arabic, Devanagari, Japanese, emoji of one and of several code points, a
# tab, a no-break space, the mark that other tokenizers write for a space, and characters that JSON escapes.
LINES = [
    "der kleine hund läuft .",
    "der große hund , der läuft , bellt &quot; laut &quot; .",
    "نص عربي من اليمين",
    "हिन्दी में एक वाक्य",
    "日本語の文です。",
    '👩\u200d🚀 🎉 a\tb\u00a0c ▁ \\ " \x07 x\u0323\u0302',
]
SEEN = "".join(sorted({*normalize("".join(LINES))}))
KINDS = [*UNITS.values(), Bpe(size=200, punctuation=True), Bpe(size=180, lower=True), Characters(lower=True)]
TOKENIZERS = [kind.fit(LINES) for kind in KINDS]
BPE = [tokenizer for tokenizer in TOKENIZERS if isinstance(tokenizer.units, Bpe)]
texts = st.text(SEEN, max_size=30)


@pytest.mark.parametrize("tokenizer", TOKENIZERS, ids=lambda tokenizer: repr(tokenizer.units))
def test_fitted_text_is_restored(tokenizer):
    lower = getattr(tokenizer.units, "lower", False)
    for line in LINES:
        written = line if isinstance(tokenizer.units, Bytes) else normalize(line, lower)
        expected = " ".join(written.split()) if isinstance(tokenizer.units, Words) else written
        ids = tokenizer.encode(line)
        assert all(RESERVED <= n < tokenizer.vocabulary.size for n in ids)
        assert tokenizer.decode([BEGIN, *ids, END, ids[0], PAD]) == expected


@pytest.mark.parametrize(
    "tokenizer", [*BPE, UNITS["characters"].fit(LINES)], ids=lambda tokenizer: repr(tokenizer.units)
)
@given(texts)
@example("")
@example(" ")
@example("  der  hund ")
@example("\tder\t\tহund"[:5])
@example("▁ der▁hund")
def test_any_text_of_known_characters_is_restored(tokenizer, text):
    written = normalize(text, getattr(tokenizer.units, "lower", False))
    # A mark that was seen on one letter may combine with another letter to a character that was not seen.
    if set(written) <= {*SEEN}:
        assert tokenizer.decode(tokenizer.encode(text)) == written


@given(st.text())
@example("👩\u200d🚀 e\u0301 \u202eשלום\u202c \x00\x07\x85\u2028")
def test_bytes_restore_any_text(text):
    tokenizer = Bytes().fit()
    ids = tokenizer.encode(text)
    assert len(ids) == len(text.encode())
    assert tokenizer.decode(ids) == text
    assert tokenizer.decode(tokenizer.encode(text, known=True)) == text


def test_bytes_are_256_and_bytes_of_no_character_are_shown():
    tokenizer = Bytes().fit()
    assert tokenizer.vocabulary.size == 3 + 256
    assert tokenizer == Bytes().fit(LINES)
    assert tokenizer.vocabulary.decode(tokenizer.encode("aé")) == ("a", "0xc3", "0xa9")
    assert tokenizer.decode([tokenizer.encode("é")[0], *tokenizer.encode("a")]) == "\ufffda"


def test_an_unpaired_surrogate_is_refused():
    with pytest.raises(DataError, match=r"U\+D800 at position 2"):
        Bytes().fit().encode("a\ud800")
    for tokenizer in (TOKENIZERS[0], *BPE):
        with pytest.raises(DataError, match=r"never seen in training: .*U\+D800\) at position 2"):
            tokenizer.encode("e\ud800")


def test_characters_and_words_by_hand():
    assert Characters().fit(["ba"]).encode("ab") == [3, 4]
    assert Words().fit(["b  a", "c\n"]).vocabulary.symbols == ("a", "b", "c")
    assert Words().fit(["b a"]).decode([4, 3, 3]) == "b a a"


def test_merges_by_hand():
    # " aa", " ab", " ab": the pair " "+"a" occurs three times, then " a"+"b" twice, and no other twice.
    tokenizer = Bpe(size=100).fit(["aa ab ab"])
    assert tokenizer.vocabulary.symbols == (" ", "a", "b", " a", " ab")
    assert tokenizer.merges == ((" ", "a"), (" a", "b"))
    assert tokenizer.vocabulary.decode(tokenizer.encode("ab aa b")) == (" ab", " a", "a", " ", "b")


def test_the_first_word_is_encoded_like_any_other():
    tokenizer = Bpe(size=60).fit(["der hund und der hund"] * 4)
    assert tokenizer.encode("hund der hund")[0] == tokenizer.encode("hund der hund")[-1]


@pytest.mark.parametrize(("size", "ids"), [(90, 90), (120, 120), (150, 133)])
def test_the_size_counts_every_id_and_merges_end_with_the_pairs(size, ids):
    lines = ["abc abd", "abcd abcd", "".join(map(chr, range(0x4E00, 0x4E00 + 60)))] * 30
    tokenizer = Bpe(size=size).fit(lines)
    assert tokenizer.vocabulary.size == ids
    assert len(tokenizer.vocabulary.symbols) == len({*tokenizer.vocabulary.symbols}) == ids - RESERVED


def test_an_alphabet_larger_than_the_size_is_refused():
    letters = "".join(map(chr, range(0x4E00, 0x4E00 + 800)))
    assert Bpe(size=804).fit([letters]).encode(letters) == list(range(3, 804))
    with pytest.raises(ValueError, match="size=803 must be at least 804"):
        Bpe(size=803).fit([letters])
    tokenizer = Characters().fit([letters])
    assert tokenizer.decode(tokenizer.encode(letters[::-1])) == letters[::-1]


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
    tokenizer = Bpe(size=60, lower=True).fit(["Ein Hund"] * 3)
    assert tokenizer.encode("EIN HUND") == tokenizer.encode("ein hund")
    assert tokenizer.decode(tokenizer.encode("EIN HUND")) == "ein hund"


@pytest.mark.parametrize("tokenizer", [TOKENIZERS[0], *BPE], ids=lambda tokenizer: repr(tokenizer.units))
def test_two_unicode_forms_of_a_letter_are_equal(tokenizer):
    apart = unicodedata.normalize("NFD", "läuft")
    assert apart != "läuft"
    assert tokenizer.encode(apart) == tokenizer.encode("läuft")


@pytest.mark.parametrize("tokenizer", [TOKENIZERS[0], *BPE], ids=lambda tokenizer: repr(tokenizer.units))
def test_characters_never_seen_are_named_or_left_out(tokenizer):
    with pytest.raises(DataError) as error:
        tokenizer.encode("der жhund ř")
    line = str(error.value)
    assert '"ж" (U+0436) at position 5' in line
    assert '"ř" (U+0159) at position 11' in line
    assert tokenizer.encode("der жhund", known=True) == tokenizer.encode("der hund")
    assert tokenizer.encode("ж", known=True) == []


def test_words_never_seen_are_named_or_left_out():
    tokenizer = Words().fit(["der hund"])
    with pytest.raises(DataError, match=r'"katze" .* at position 2'):
        tokenizer.encode("der katze")
    assert tokenizer.decode(tokenizer.encode("der katze hund", known=True)) == "der hund"


@pytest.mark.parametrize("kind", [Characters(), Words(), Bpe()])
@pytest.mark.parametrize("sentences", [[], ["", "  "]])
def test_there_must_be_text_to_learn_from(kind, sentences):
    with pytest.raises(DataError, match=f"the {len(sentences)} sentences contain no text"):
        kind.fit(sentences)


@pytest.mark.parametrize("tokenizer", TOKENIZERS, ids=lambda tokenizer: repr(tokenizer.units))
def test_json_restores_the_tokenizer(tokenizer):
    again = units.from_json(json.loads(json.dumps(tokenizer.to_json(), ensure_ascii=False)))
    assert again == tokenizer
    assert [again.encode(line) for line in LINES] == [tokenizer.encode(line) for line in LINES]


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
    tokenizer = Bpe().fit(text for source, (target,), _ in parts["train"] for text in (source, target))
    assert tokenizer.vocabulary.size == 10_000
    assert {" mann", " man", " ein", " the", " &apos;s"} <= {*tokenizer.vocabulary.symbols}
    tokens = 0
    for source, (target,), _ in parts["valid"] + parts["test"]:
        for text in (source, target):
            ids = tokenizer.encode(text)
            tokens += len(ids)
            assert tokenizer.decode(ids) == text
    words = sum(len(text.split()) for part in ("valid", "test") for s, (t,), _ in parts[part] for text in (s, t))
    assert 1 < tokens / words < 1.2
