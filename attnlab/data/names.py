"""Names: as they are compared, and those that must be one of a few."""

import unicodedata
from collections.abc import Iterable
from difflib import get_close_matches

PARTS = ("train", "valid", "test")  # of data; all but the first are examined


def composed(name: str) -> str:
    """The name in NFC: what looks the same is the same, whichever system wrote it."""
    return unicodedata.normalize("NFC", name)


def check(field: str, name: str, known: Iterable[str]) -> None:
    """Raise ValueError where `name` is none of `known`: the field, the nearest of them, and all of them."""
    known = list(known)
    if name not in known:
        near = get_close_matches(str(name), known, n=1, cutoff=0.4)
        hint = f"; nearest: {near[0]!r}" if near else ""
        raise ValueError(f"{field}={name!r} is not known{hint}; known: {', '.join(known)}")


def check_part(part: str, limit: int | None) -> None:
    """Raise ValueError where `part` is not examined, or `limit`, of how many examples, is neither None nor positive."""
    if part not in PARTS[1:] or (limit is not None and limit < 1):
        raise ValueError(f"{part=} must be 'valid' or 'test', {limit=} None or 1 or more")
