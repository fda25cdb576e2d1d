"""Whole numbers that took long to compute, kept in a file by a key."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from attnlab.storage.json_file import FolderError, content, dump_with_checksum, load_with_checksum, write_whole

MOST = 10_000  # numbers in a file; beyond it the file starts anew


@dataclass(frozen=True)
class NumberCache:
    """A JSON file of whole numbers by key.

    It is only a cache: a damaged file is ignored, and what cannot be written is not kept. If two processes write at
    once, a number may be lost.
    """

    path: Path
    """The file. Its folder need not exist."""

    def get(self, key: str) -> int | None:
        """Return the number of a key, or None if there is none."""
        number = self._numbers().get(key)
        return number if isinstance(number, int) else None

    def put(self, key: str, number: int) -> None:
        """Keep a number."""
        numbers = self._numbers()
        numbers = {key: number} if len(numbers) >= MOST else numbers | {key: number}
        with suppress(FolderError, OSError):
            self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            write_whole(self.path, dump_with_checksum({"numbers": numbers}))

    def _numbers(self) -> dict[str, object]:
        with suppress(FolderError):
            if found := content(self.path):
                return load_with_checksum(found, {"numbers": dict}, str(self.path))["numbers"]
        return {}
