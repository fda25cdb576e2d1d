"""Names that a variant may have: its folder is called by it."""

from __future__ import annotations

from attnlab.storage.json_file import encoded

# What ends so in a study's folder is a file of the study's own.
STUDY_FILES = (".json", ".html", ".csv", ".png")


def check_folder_name(name: str) -> str:
    """`name`, if a folder may be called so on every system; else ValueError.

    >>> check_folder_name("gated-linear")
    'gated-linear'
    """
    edges = not name or name != name.strip() or name[0] == "." or len(encoded(name)) > 100
    if edges or any(letter in '/\\:*?"<>|' or not letter.isprintable() for letter in name):
        raise ValueError(
            f'{name=} cannot name a folder: at most 100 bytes, with no separator, none of :*?"<>|, '
            "no dot at the start, no space at an end and nothing unprintable"
        )
    return name
