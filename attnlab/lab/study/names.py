"""The names that a variant may have. They become folder names."""

from __future__ import annotations

from attnlab.storage.json_file import encode_utf8

# The endings of the files that a study keeps in its own folder, next to the folders of its variants.
STUDY_FILES = (".json", ".html", ".csv", ".png")


def check_folder_name(name: str) -> str:
    """Return `name` if it can name a folder on every system, else raise ValueError.

    A name has at most 100 bytes, no separator, none of `:*?"<>|`, no leading dot, no space at an end and nothing
    unprintable.

    >>> check_folder_name("gated-linear")
    'gated-linear'
    """
    edges = not name or name != name.strip() or name[0] == "." or len(encode_utf8(name)) > 100
    if edges or any(letter in '/\\:*?"<>|' or not letter.isprintable() for letter in name):
        raise ValueError(
            f'{name=} cannot name a folder; use 1 to 100 bytes, no separator, none of :*?"<>|, no dot at the start, '
            "no space at either end, and no unprintable character"
        )
    return name
