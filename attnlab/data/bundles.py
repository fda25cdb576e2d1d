"""Many files as one: what a folder or an archive holds, and data sets that no address serves as one file."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from attnlab.data import folders
from attnlab.data.archives import members
from attnlab.data.files import DataError, given, places

Files = Mapping[str, bytes | Path]


def within(path: Path) -> Files:
    """The files of a folder, all that it holds, or of an archive, but those that are `folders.hidden`.

    Raises DataError where there is neither, and as `folders.files` and `archives.members`.
    """
    if path.is_dir():
        return {each.relative_to(path).as_posix(): each for each in folders.files(path)}
    return {each: content for each, content in members(path).items() if not folders.hidden(each)}


@dataclass(frozen=True)
class Bundle:
    """Files that the repository at `url` serves one by one: an archive of them, or a clone of the repository.

    On disk they are packed as `file` in the folder `set`, or that folder is the clone. `chosen` picks, from all
    files by their names without folders, the names of those that belong to the set; `sha256` is that of what
    `sha256sum` prints of these, in the order of their names.
    """

    set: str
    file: str
    url: str
    sha256: str
    chosen: Callable[[Files], Iterable[str]]

    def read(self) -> dict[str, bytes]:
        """The verified files by their names without folders, in the order of these.

        Raises DataError where they are missing, or are not those that attnlab knows.
        """
        return self.find()[1]

    def find(self) -> tuple[Path, dict[str, bytes]]:
        """Where they are, and what `read` answers."""
        looked = places(self.set)
        for folder in looked:
            for path in (folder / self.file, folder):
                if path.exists() and (files := self._chosen(path)):
                    self._verify(files, path)
                    return path, files
        raise DataError(
            f"{self.set} is missing: looked in {', '.join(map(str, looked))}; no address serves it as one file: "
            f"git clone {self.url} {looked[-1]}"
        )

    def _chosen(self, path: Path) -> dict[str, bytes]:
        found: dict[str, bytes | Path] = {}
        for name, file in within(path).items():
            found.setdefault(PurePosixPath(name).name, file)
        names = sorted(set(self.chosen(found)))
        if missing := [name for name in names if name not in found]:
            raise DataError(f"{path} lacks {missing[0]!r}")
        return {name: given(found[name], path)[0] for name in names}

    def _verify(self, files: dict[str, bytes], path: Path) -> None:
        listed = "".join(f"{hashlib.sha256(content).hexdigest()}  {name}\n" for name, content in files.items())
        if (found := hashlib.sha256(listed.encode()).hexdigest()) != self.sha256:
            raise DataError(
                f"{path} is not the data attnlab knows: sha256 {self.sha256} expected, {found} found, of its "
                f"{len(files)} files; point ATTNLAB_DATA at a good copy, or rename it and get it again from {self.url}"
            )
