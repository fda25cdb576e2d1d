"""Names: how they are compared, and checks against a list of known names."""

import unicodedata
from collections.abc import Iterable
from difflib import get_close_matches

from attnlab.storage.file_names import as_text

PARTS = ("train", "valid", "test")  # the parts of a data set; the last two are for evaluation


def composed(name: str) -> str:
    """Returns the name in Unicode's NFC, so that names that look the same are equal, whichever system wrote them.

    The name of a file or folder is decoded as in `as_text`.
    """
    return unicodedata.normalize("NFC", as_text(name))


def check(field: str, name: str, known: Iterable[str]) -> None:
    """Checks that a name is one of the known names.

    Args:
      field: name of the field or argument, used in the message.
      name: the name to check.
      known: all valid names.

    Raises:
      ValueError: if `name` is not known. The message has the field, the nearest known name and all known names.
    """
    known = list(known)
    if name not in known:
        near = get_close_matches(str(name), known, n=1, cutoff=0.4)
        hint = f"; nearest: {near[0]!r}" if near else ""
        raise ValueError(f"{field}={name!r} is not known{hint}; known: {', '.join(known)}")


def check_part(part: str, limit: int | None) -> None:
    """Checks the part to evaluate and the number of examples.

    Args:
      part: "valid" or "test".
      limit: number of examples, at least 1, or None for all.

    Raises:
      ValueError: if either has another value.
    """
    if part not in PARTS[1:] or (limit is not None and limit < 1):
        raise ValueError(f"{part=} must be 'valid' or 'test', and {limit=} must be None or at least 1")
