"""Names that must be one of a few."""

from collections.abc import Iterable
from difflib import get_close_matches


def check(field: str, name: str, known: Iterable[str]) -> None:
    """Raise ValueError where `name` is none of `known`: the field, the nearest of them, and all of them."""
    known = list(known)
    if name not in known:
        near = get_close_matches(str(name), known, n=1, cutoff=0.4)
        hint = f"; nearest: {near[0]!r}" if near else ""
        raise ValueError(f"{field}={name!r} is not known{hint}; known: {', '.join(known)}")
