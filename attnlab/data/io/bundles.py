"""Sets of files: the content of a folder or an archive, and data sets that are not served as one file."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from attnlab.data.io import folders
from attnlab.data.io.archives import members
from attnlab.data.io.files import DataError, given
from attnlab.data.io.published import places

Files = Mapping[str, bytes | Path]  # by name: the content, or the path of the file


def within(path: Path) -> Files:
    """Returns the files in a folder or an archive, except those that are `folders.hidden`.

    Raises:
      DataError: as `folders.files` and `archives.members`, also if `path` is neither a folder nor an archive.
    """
    if path.is_dir():
        return {each.relative_to(path).as_posix(): each for each in folders.files(path)}
    return {each: content for each, content in members(path).items() if not folders.hidden(each)}


@dataclass(frozen=True)
class Bundle:
    """A data set that a repository serves file by file.

    On disk, it is an archive named `file` in the folder `set`, or that folder is a clone of the repository.
    """

    set: str
    """Name of the data set, and of its folder."""
    file: str
    """Name of the archive in this folder."""
    url: str
    """Address of the repository."""
    sha256: str
    """The sha256 of the output of `sha256sum` for the chosen files, in the order of their names."""
    chosen: Callable[[Files], Iterable[str]]
    """Selects the names of the files that belong to the set. It gets all files by their names without folders."""

    def read(self) -> dict[str, bytes]:
        """Returns the verified files by their names without folders, in the order of these names.

        Raises:
          DataError: if they are missing, or do not have the expected sha256.
        """
        return self.find()[1]

    def find(self) -> tuple[Path, dict[str, bytes]]:
        """Returns the folder or archive in which the files are, and the result of `read`.

        Raises:
          DataError: as `read`.
        """
        searched = places(self.set)
        for folder in searched:
            for path in (folder / self.file, folder):
                if path.exists() and (files := self._chosen(path)):
                    self._verify(files, path)
                    return path, files
        raise DataError(
            f"{self.set} is missing: looked in {', '.join(map(str, searched))}; it is not served as one "
            f"file, get it with git clone {self.url} {searched[-1]}"
        )

    def _chosen(self, path: Path) -> dict[str, bytes]:
        """Returns the chosen files of a folder or an archive; raises DataError if one is missing."""
        found: dict[str, bytes | Path] = {}
        for name, file in within(path).items():
            found.setdefault(PurePosixPath(name).name, file)
        names = sorted(set(self.chosen(found)))
        if missing := [name for name in names if name not in found]:
            raise DataError(f"{path} lacks {missing[0]!r}")
        return {name: given(found[name], path)[0] for name in names}

    def _verify(self, files: dict[str, bytes], path: Path) -> None:
        """Raises DataError if the files do not have the expected sha256."""
        listed = "".join(f"{hashlib.sha256(content).hexdigest()}  {name}\n" for name, content in files.items())
        if (found := hashlib.sha256(listed.encode()).hexdigest()) != self.sha256:
            raise DataError(
                f"{path} is not the expected data: sha256 {self.sha256} expected, {found} found for its "
                f"{len(files)} files; point ATTNLAB_DATA at a good copy, or rename this one and get it again from "
                f"{self.url}"
            )
