"""Dates as they are written in forty languages (Unicode CLDR, through Babel), and in ISO 8601."""

import re
import unicodedata
from collections.abc import Iterator, Sequence
from datetime import date, timedelta
from functools import cache
from itertools import product

import numpy as np

from attnlab.data.io.files import DataError
from attnlab.data.names import PARTS
from attnlab.data.rng import generator
from attnlab.data.text.example import Example, Parts

_LANGUAGES = (
    "en en_GB de fr es pt it nl sv da nb fi et lv lt pl cs hu ro bg "
    "uk ru el tr ar he fa hi bn ta th vi id ja ko zh ka hy am sw"
)
LANGUAGES = tuple(_LANGUAGES.split())
FORMS = ("full", "long", "medium", "short")
FIRST, LAST = date(1900, 1, 1), date(2099, 12, 31)
DAYS = (LAST - FIRST).days + 1  # 73,049

# Babel always writes Latin digits. CLDR has the digits that a language uses: the zero of each numbering system.
_ZERO = {"arab": "٠", "arabext": "۰", "beng": "০", "deva": "०"}
# Marks of writing direction are invisible, and nobody types them.
_UNSEEN = dict.fromkeys(map(ord, "\u200e\u200f\u061c"))


def read(seed: int, sizes: dict[str, int], languages: Sequence[str] = LANGUAGES) -> Parts:
    """Draws the examples of each part: a written date, its ISO form and its language. A pure function of its arguments.

    Languages take turns, so that any prefix is balanced over them. Forms and days are uniformly random. Days do not
    repeat within a language as long as there are enough. The part of a day depends only on the day (`part_of`), so no
    test day occurs in training in any language, under any seed.

    Args:
      seed: seed of the examples.
      sizes: the number of examples of each part.
      languages: codes of languages, out of `LANGUAGES`.

    Raises:
      DataError: if two days are written in the same way in these languages.
    """
    forbid_collisions(languages)
    groups = part_of(np.arange(DAYS))
    answer = {}
    for n, part in enumerate(PARTS):
        random = generator(seed, n)
        answer[part] = list(_draw(random, np.flatnonzero(groups == n), sizes[part], languages))
    return answer


def part_of(days: np.ndarray) -> np.ndarray:
    """Returns the part of each day as an index of PARTS, with shares of 80%, 10% and 10%.

    The part is a hash (the finalizer of SplitMix64; Steele et al. 2014), so that the parts of neighbouring days are
    unrelated.

    Args:
      days: the days [N], counted from 1900-01-01.
    """
    x = (days.astype(np.uint64) + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    tenth = (x ^ (x >> np.uint64(31))) % np.uint64(10)
    return np.select([tenth == 8, tenth == 9], [1, 2], 0)


def forms(language: str) -> tuple[str, ...]:
    """Returns the forms in which a language writes a day with all digits of the year, without repetition.

    Forms with a year of two digits are left out. They would be ambiguous in the century, and 05/06/07 could be a day in
    six orders.
    """
    patterns = {form: _locale(language).date_formats[form].pattern for form in FORMS}
    whole = [form for form in FORMS if "yy" not in re.sub(r"'[^']*'|yyyy", "", patterns[form])]
    return tuple({patterns[form]: form for form in reversed(whole)}.values())


def write(day: date, form: str, language: str) -> str:
    """Writes a day in a form of a language.

    Args:
      day: the day.
      form: the form, out of `FORMS`.
      language: the code of the language, out of `LANGUAGES`.
    """
    locale = _locale(language)
    text = locale.date_formats[form].apply(day, locale)
    return plain(text.translate(_digits(locale.default_numbering_system)))


def plain(text: str) -> str:
    """Returns text as it is typed: in NFC, with single plain spaces, without marks of writing direction."""
    return " ".join(unicodedata.normalize("NFC", text).translate(_UNSEEN).split())


def forbid_collisions(languages: Sequence[str]) -> None:
    """Raises DataError if two days are written in the same way.

    It is enough to check four days of each month. They distinguish any two orders of day and month, of one digit and of
    two, and any two names of months. Full years cannot be confused.
    """
    meanings: dict[str, tuple[date, str]] = {}
    days = [date(2024, month, day) for month, day in product(range(1, 13), (1, 2, 11, 13))]
    for language in languages:
        for form, day in product(forms(language), days):
            other, first = meanings.setdefault(text := write(day, form, language), (day, language))
            if other != day:
                raise DataError(
                    f"task.languages: {text!r} means {other} in {first} and {day} in {language}; "
                    "remove one of these languages"
                )


def _draw(random: np.random.Generator, days: np.ndarray, size: int, languages: Sequence[str]) -> Iterator[Example]:
    """Yields the examples of one part."""
    each = -(-size // len(languages))
    drawn = [random.choice(days, each, replace=each > len(days)) for _ in languages]
    written = [random.choice(forms(language), each) for language in languages]
    for n in range(size):
        turn, l = divmod(n, len(languages))
        day = FIRST + timedelta(int(drawn[l][turn]))
        yield Example(write(day, written[l][turn], languages[l]), (day.isoformat(),), languages[l])


@cache
def _locale(language: str):
    """Returns Babel's locale of a language."""
    # Imported here because importing Babel is slow.
    from babel import Locale

    return Locale.parse(language)


@cache
def _digits(system: str) -> dict[int, str]:
    """Returns the table that translates Latin digits to those of a numbering system."""
    zero = ord(_ZERO.get(system, "0"))
    return {ord("0") + n: chr(zero + n) for n in range(10)}
