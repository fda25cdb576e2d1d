"""Inputs that refer to an example of the task's own data by its number."""

import re
from collections.abc import Mapping

from attnlab.data.io.files import DataError


def numbered(text: str, counts: Mapping[str, int], what: str = "images") -> tuple[str, int] | None:
    """Parses a reference to an example, for example "test:12" for the twelfth example of the test part.

    Args:
        text: The input.
        counts: The number of examples of each part that may be used.
        what: What examples are called in the error message.

    Returns:
        The part and the index from 0, for example ("test", 11), or None if `text` is not such a reference.

    Raises:
        DataError: If the part has no example of that number.
    """
    found = re.fullmatch(rf"({'|'.join(counts)}):([0-9]+)", text.strip())
    if found is None:
        return None
    part, number = found[1], int(found[2][:20])
    if not 1 <= number <= counts[part]:
        raise DataError(f"{text.strip()} does not exist; the {part} part has {what} 1 … {counts[part]}")
    return part, number - 1
