"""File names in files of UTF-8, in every locale.

Python reads the bytes of a name that the locale does not decode as surrogates, U+DC80 to U+DCFF. In an ASCII locale,
"ü" of the command line becomes two of them. A file stores the name as text, which is the same in every locale.
"""

import os
import re

BYTES = re.compile("[\udc80-\udcff]+")


def as_text(name: str) -> str:
    r"""Return a name with the surrogates that stand for valid UTF-8 decoded. All others are kept.

    >>> ascii(as_text("f\udcc3\udcbcr")), ascii(as_text("f\xfcr")), ascii(as_text("f\udcfcr"))
    ("'f\\xfcr'", "'f\\xfcr'", "'f\\udcfcr'")
    """
    return BYTES.sub(lambda found: _bytes(found[0]).decode("utf-8", "surrogateescape"), name)


def as_name(text: str) -> str:
    """Return the name under which a file is opened, from what `as_text` returned. In an ASCII locale it is in UTF-8."""
    try:
        os.fsencode(text)
    except UnicodeEncodeError:
        try:
            return os.fsdecode(_bytes(text))
        except UnicodeEncodeError:  # a surrogate that stands for no byte: no file has this name
            return text
    return text


def _bytes(text: str) -> bytes:
    """Return the bytes of a name in UTF-8, including those that surrogates stand for."""
    return text.encode("utf-8", "surrogateescape")
