import gzip
import hashlib

import pytest

from attnlab.data.io.files import DataError
from attnlab.data.io.published import Source, read
from attnlab.data.text import moses, multi30k


def words(parts, part):
    """Returns the number of words in the sources and in the targets of a part."""
    sides = zip(*((source.split(), target.split()) for source, (target,), _ in parts[part]), strict=True)
    return tuple(sum(map(len, side)) for side in sides)


def test_the_published_captions_tokenised(published):
    published("multi30k")
    parts = multi30k.parts("de", "en")
    assert {part: len(examples) for part, examples in parts.items()} == {"train": 29_000, "valid": 1_014, "test": 1_000}
    # The page of the data set gives these counts. 12,103 is also the length of the references of published BLEU scores.
    assert words(parts, "train") == (360_706, 377_534)
    assert words(parts, "valid") == (12_828, 13_308)
    assert words(parts, "test") == (12_103, 12_968)
    assert parts["test"][0].source.startswith("ein mann ")
    assert parts["test"][0].targets[0].startswith("a man ")
    for source, (target,), group in (example for part in parts.values() for example in part):
        assert source
        assert target
        assert group == ""
        assert source == source.lower().strip()
        assert target == target.lower().strip()


def test_the_other_direction_swaps_the_sides(published):
    published("multi30k")
    there, back = multi30k.parts("en", "de"), multi30k.parts("de", "en")
    for part in ("valid", "test"):
        assert [(target, source) for source, (target,), _ in there[part]] == [(s, t) for s, (t,), _ in back[part]]


def test_the_published_captions_as_they_were_written(published):
    published("multi30k")
    raw, tokenised = multi30k.parts(tokenised=False), multi30k.parts()
    assert {part: len(examples) for part, examples in raw.items()} == {"train": 29_000, "valid": 1_014, "test": 1_000}
    assert all(example.source and example.targets[0] for part in raw.values() for example in part)
    assert raw["test"][0].source.startswith("Ein Mann ")
    # The captions are the same and in the same order. Most have the same letters in the same order.
    letters = lambda text: "".join(c for c in text.lower() if "a" <= c <= "z")
    pairs = zip(raw["test"], tokenised["test"], strict=True)
    same = sum(letters(one.targets[0]) == letters(other.targets[0]) for one, other in pairs)
    assert same > 900


@pytest.mark.parametrize("language", ["en", "de"])
def test_typed_text_is_tokenised_as_published(published, language):
    """Only errors in the data differ, for example an & that is escaped twice. Tokenised text stays unchanged."""
    published("multi30k")
    other = {"en": "de", "de": "en"}[language]
    raw, tokenised = (multi30k.parts(language, other, tokenised=kind) for kind in (False, True))
    for part, examples in tokenised.items():
        own = [moses.tokenised(example.source, language) != " ".join(example.source.split()) for example in examples]
        pairs = zip(raw[part], examples, strict=True)
        typed = [moses.tokenised(one.source, language) != other.source for one, other in pairs]
        assert (sum(own), sum(typed)) <= (1, 25) if part == "train" else (sum(own), sum(typed)) <= (1, 1), part


@pytest.mark.parametrize(
    ("language", "typed", "held"),
    [
        ("en", "The dog's ball — it's red…", "the dog &apos;s ball - it &apos;s red ..."),
        ("de", "Läuft's, „Hallo.“", "läuft &apos; s , &quot; hallo &quot; ."),
        ("de", "Nr. 28. Im 2. Stock!", "nr . 28. im 2. stock !"),
        ("en", "a [b] | c & d < e", "a &#91; b &#93; &#124; c &amp; d &lt; e"),
        ("en", "", ""),
    ],
)
def test_punctuation_is_separated(language, typed, held):
    assert moses.tokenised(typed, language) == held
    assert moses.tokenised(held, language) == held


@pytest.mark.parametrize(("source", "target"), [("de", "de"), ("en", "fr"), ("", "en")])
def test_languages_are_one_of_each(source, target):
    with pytest.raises(ValueError, match=r"source=|target="):
        multi30k.parts(source, target)


def test_a_raw_file_is_verified_by_its_packed_bytes(monkeypatch, tmp_path):
    packed = gzip.compress("Ein Hund\t.\u00a0\r\nZwei\u2028Hunde \n".encode())
    known = Source("multi30k", "own.gz", hashlib.sha256(packed).hexdigest(), len(packed), "https://example.org/own.gz")
    folder = tmp_path / "multi30k"
    folder.mkdir()
    (folder / "own.gz").write_bytes(packed)
    monkeypatch.setenv("ATTNLAB_DATA", str(tmp_path))
    monkeypatch.setattr(multi30k, "SOURCES", {"own.gz": known})
    assert read(known) == packed
    pairs = multi30k._pairs("own", "own")
    assert [example.source for example in pairs] == ["Ein Hund\t.", "Zwei\u2028Hunde"]
    (folder / "own.gz").write_bytes(packed[:-1])
    with pytest.raises(DataError, match=r"own\.gz is not the expected file"):
        multi30k._pairs("own", "own")


def test_missing_captions_say_so(monkeypatch, tmp_path):
    monkeypatch.setenv("ATTNLAB_DATA", str(tmp_path))
    with pytest.raises(DataError, match=r"train\.lc\.norm\.tok\.de is missing"):
        multi30k.parts()
