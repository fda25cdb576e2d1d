"""An example of a task's own data, asked for by its number."""

import re
from collections.abc import Mapping

from attnlab.data.io.files import DataError


def numbered(text: str, counts: Mapping[str, int], what: str = "images") -> tuple[str, int] | None:
    """("test", 11) for "test:12", the twelfth of the part; None where `text` is no such thing.

    `counts` says how many examples each part that may be asked has, `what` what they are. Raises DataError for a number
    that the part has not.
    """
    found = re.fullmatch(rf"({'|'.join(counts)}):([0-9]+)", text.strip())
    if found is None:
        return None
    part, number = found[1], int(found[2][:20])
    if not 1 <= number <= counts[part]:
        raise DataError(f"{text.strip()}: the {part} part has the {what} 1 … {counts[part]}")
    return part, number - 1
