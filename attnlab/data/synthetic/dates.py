"""Days as people write them in forty languages (Unicode CLDR, by way of Babel), and as ISO 8601 does."""

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

# Babel writes Latin digits everywhere; CLDR says which ones a language is written with.
_ZERO = {"arab": "٠", "arabext": "۰", "beng": "০", "deva": "०"}
# Marks of direction are not typed, and not seen.
_UNSEEN = dict.fromkeys(map(ord, "\u200e\u200f\u061c"))


def read(seed: int, sizes: dict[str, int], languages: Sequence[str] = LANGUAGES) -> Parts:
    """Examples of each part: a written date, its ISO form, its language.

    Languages take turns, so that any prefix is balanced over them; forms and days are drawn evenly, days
    without repetition as long as they last. Which part a day is in depends on the day alone (`part_of`): no
    test day is seen in training in any language, under any seed. A pure function of its arguments.

    Raises DataError where two of the languages write two days alike.
    """
    forbid_collisions(languages)
    groups = part_of(np.arange(DAYS))
    answer = {}
    for n, part in enumerate(PARTS):
        random = generator(seed, n)
        answer[part] = list(_draw(random, np.flatnonzero(groups == n), sizes[part], languages))
    return answer


def part_of(days: np.ndarray) -> np.ndarray:
    """The part of each day [N] (counted from 1900-01-01), as an index of PARTS: 80%, 10% and 10% of them.

    A hash (the finaliser of SplitMix64; Steele et al. 2014), so that neighbours are in unrelated parts.
    """
    x = (days.astype(np.uint64) + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    tenth = (x ^ (x >> np.uint64(31))) % np.uint64(10)
    return np.select([tenth == 8, tenth == 9], [1, 2], 0)


def forms(language: str) -> tuple[str, ...]:
    """The forms in which a language writes a day with its whole year, equal ones once.

    A year of two digits names a day of two centuries, and makes 05/06/07 a day in six orders.
    """
    patterns = {form: _locale(language).date_formats[form].pattern for form in FORMS}
    whole = [form for form in FORMS if "yy" not in re.sub(r"'[^']*'|yyyy", "", patterns[form])]
    return tuple({patterns[form]: form for form in reversed(whole)}.values())


def write(day: date, form: str, language: str) -> str:
    """A day as a language writes it."""
    locale = _locale(language)
    text = locale.date_formats[form].apply(day, locale)
    return plain(text.translate(_digits(locale.default_numbering_system)))


def plain(text: str) -> str:
    """Text as it is typed: NFC, one plain space for any white space, no marks of direction."""
    return " ".join(unicodedata.normalize("NFC", text).translate(_UNSEEN).split())


def forbid_collisions(languages: Sequence[str]) -> None:
    """Raise DataError where a string names two days.

    Twelve days of twelve months tell any two orders and any two names of months apart, and whole years
    cannot be taken for one another: 144 days speak for all.
    """
    seen: dict[str, tuple[date, str]] = {}
    days = [date(2024, month, day) for month, day in product(range(1, 13), range(1, 13))]
    for language in languages:
        for form, day in product(forms(language), days):
            other, first = seen.setdefault(text := write(day, form, language), (day, language))
            if other != day:
                raise DataError(
                    f"task.languages: {text!r} is {other} in {first} and {day} in {language}; "
                    "leave one of these languages out"
                )


def _draw(random: np.random.Generator, days: np.ndarray, size: int, languages: Sequence[str]) -> Iterator[Example]:
    each = -(-size // len(languages))
    drawn = [random.choice(days, each, replace=each > len(days)) for _ in languages]
    written = [random.choice(forms(language), each) for language in languages]
    for n in range(size):
        turn, l = divmod(n, len(languages))
        day = FIRST + timedelta(int(drawn[l][turn]))
        yield Example(write(day, written[l][turn], languages[l]), (day.isoformat(),), languages[l])


@cache
def _locale(language: str):
    # Imported when it is needed: Babel is slower to import than all the rest of this room.
    from babel import Locale

    return Locale.parse(language)


@cache
def _digits(system: str) -> dict[int, str]:
    zero = ord(_ZERO.get(system, "0"))
    return {ord("0") + n: chr(zero + n) for n in range(10)}
