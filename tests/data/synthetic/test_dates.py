import unicodedata
from collections import Counter
from datetime import date, timedelta

import numpy as np
import pytest

from attnlab.data.io.files import DataError
from attnlab.data.synthetic import dates
from attnlab.data.synthetic.dates import DAYS, FIRST, FORMS, LANGUAGES, LAST

SIZES = {"train": 4_000, "valid": 400, "test": 400}


@pytest.fixture(scope="module")
def parts():
    return dates.read(0, SIZES)


def day_number(iso: str) -> int:
    return (date.fromisoformat(iso) - FIRST).days


def test_forty_languages_in_fourteen_scripts():
    assert len(set(LANGUAGES)) == len(LANGUAGES) == 40
    written = "".join(dates.write(date(2024, 5, 7), "full", language) for language in LANGUAGES)
    assert len({unicodedata.name(letter).split()[0] for letter in written if letter.isalpha()}) == 14


@pytest.mark.parametrize(
    ("language", "form", "written"),
    [
        ("en", "long", "March 5, 2024"),
        ("en_GB", "short", "05/03/2024"),
        ("de", "full", "Dienstag, 5. März 2024"),
        ("de", "medium", "05.03.2024"),
        ("fr", "long", "5 mars 2024"),
        ("ja", "long", "2024年3月5日"),
        ("ko", "medium", "2024. 3. 5."),
        ("ar", "short", "5/3/2024"),  # without marks of direction
        ("fa", "short", "۲۰۲۴/۳/۵"),  # Persian digits
        ("ru", "long", "5 марта 2024 г."),  # a plain space before г.
    ],
)
def test_written_dates_of_known_days(language, form, written):
    assert dates.write(date(2024, 3, 5), form, language) == written


def test_writing_equals_babel_except_digits_and_spaces():
    from babel.dates import format_date

    for language in LANGUAGES:
        for form in FORMS:
            day = date(1987, 11, 23)
            written = dates.write(day, form, language)
            digits = "".join(str(unicodedata.decimal(c)) if c.isdecimal() else c for c in written)
            assert digits == dates.plain(format_date(day, form, locale=language))


def test_plain_returns_typed_text():
    assert dates.plain(" 5.\u00a0ledna\u202f2024\t") == "5. ledna 2024"
    assert dates.plain("5\u200f/\u200e3") == "5/3"
    assert dates.plain("a\u0301") == "á"
    assert dates.plain("  ") == ""


def test_every_language_has_the_forms_with_words_and_no_year_of_two_digits():
    for language in LANGUAGES:
        forms = dates.forms(language)
        assert "full" in forms
        assert len(forms) >= 3
        for form in forms:
            written = dates.write(date(2031, 2, 3), form, language)
            assert "2031" in "".join(str(unicodedata.decimal(c)) for c in written if c.isdecimal())
    assert "short" not in dates.forms("en")
    assert "short" in dates.forms("en_GB")


def test_no_string_is_ambiguous():
    dates.forbid_collisions(LANGUAGES)


def test_an_ambiguous_string_is_detected(monkeypatch):
    # Writes the medium English form as month/day/year, for example 03/05/2024. Other languages write day/month/year.
    real = dates.write

    def write(day, form, language):
        american = (language, form) == ("en", "medium")
        return f"{day:%m/%d/%Y}" if american else real(day, form, language)

    monkeypatch.setattr(dates, "write", write)
    with pytest.raises(DataError, match=r"means 2024-.* in en and 2024-.* in (fr|en_GB); remove one"):
        dates.forbid_collisions(("en", "en_GB", "fr"))


@pytest.mark.slow
def test_no_string_is_ambiguous_within_two_centuries():
    # Hashes replace the strings, because ten million strings do not fit into memory. A chance collision has odds of one
    # in 10⁵.
    days = [FIRST + timedelta(n) for n in range(DAYS)]
    pairs = [(language, form) for language in LANGUAGES for form in dates.forms(language)]
    hashes = np.empty((len(pairs), DAYS), np.int64)
    for n, (language, form) in enumerate(pairs):
        hashes[n] = [hash(dates.write(day, form, language)) for day in days]
    flat, numbers = hashes.ravel(), np.tile(np.arange(DAYS, dtype=np.int32), len(pairs))
    order = np.argsort(flat, kind="stable")
    same = flat[order][1:] == flat[order][:-1]
    assert same.any()
    assert (numbers[order][1:] == numbers[order][:-1])[same].all()


def test_days_are_split_by_a_hash_of_the_day():
    groups = dates.part_of(np.arange(DAYS))
    assert DAYS == 73_049
    assert FIRST + timedelta(DAYS - 1) == LAST
    share = np.bincount(groups) / DAYS
    assert np.abs(share - [0.8, 0.1, 0.1]).max() < 0.005
    # Neighbouring days are independent: a test day follows a test day as often as by chance.
    test = groups == 2
    assert abs((test[1:] & test[:-1]).mean() - 0.01) < 0.002
    assert (dates.part_of(np.arange(1000)) == groups[:1000]).all()


def test_no_test_day_is_seen_in_training_under_any_seed(parts):
    other = dates.read(1, SIZES)
    days = {part: {example.targets[0] for example in parts[part] + other[part]} for part in parts}
    assert not days["train"] & days["test"]
    assert not days["train"] & days["valid"]
    assert not days["valid"] & days["test"]
    for part, n in (("train", 0), ("valid", 1), ("test", 2)):
        numbers = np.array([day_number(iso) for iso in days[part]])
        assert (dates.part_of(numbers) == n).all()


def test_any_prefix_is_balanced_over_languages(parts):
    for part, size in SIZES.items():
        assert len(parts[part]) == size
        for limit in (1, 40, 100, size):
            counted = Counter(example.group for example in parts[part][:limit])
            assert max(counted.values()) - min(counted.get(language, 0) for language in LANGUAGES) <= 1


def test_samples_are_a_function_of_the_seed(parts):
    assert dates.read(0, SIZES) == parts
    assert dates.read(1, SIZES)["train"] != parts["train"]


def test_days_are_not_repeated_within_a_language(parts):
    german = [example.targets for example in parts["train"] if example.group == "de"]
    assert len(set(german)) == len(german) == 100


def test_all_forms_are_drawn(parts):
    sources = [example.source for example in parts["train"] if example.group == "en"]
    assert any("," in s and s[0].isupper() and s.count(",") == 2 for s in sources)  # full
    assert any(s.split()[0] in ("January", "October") for s in sources)  # long
    assert any(s.split()[0] in ("Jan", "Oct") for s in sources)  # medium


def test_one_language_and_more_examples_than_days():
    parts = dates.read(0, {"train": 10, "valid": 8_000, "test": 10}, ("sv",))
    assert len(parts["valid"]) == 8_000
    assert {example.group for example in parts["valid"]} == {"sv"}


def test_targets_are_iso_days_within_two_centuries(parts):
    for example in parts["test"]:
        (iso,) = example.targets
        assert 0 <= day_number(iso) < DAYS
        assert date.fromisoformat(iso).isoformat() == iso
