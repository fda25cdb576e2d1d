"""A run's folder on disk: what its files are called and what they hold."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from attnlab.lab.study.names import check_folder_name
from attnlab.storage import json_file, json_lines
from attnlab.storage.checksum import checksum
from attnlab.storage.json_file import Fields, FolderError, write_whole
from attnlab.system.environment import environment

__all__ = ["FILES", "FolderError", "RunFolder", "check_folder_name", "environment"]

FORMAT = 2  # of the files in a run folder; `experiment.json` holds the number
READERS = {1: "0.1.0"}  # which version of attnlab reads an older format
# The fields that each file must hold. More may stand beside them.
FILES: dict[str, Fields] = {
    "experiment": {"study": str, "question": str, "variant": str, "quick": bool, "experiment": dict},
    "vocabulary": {},
    "environment": {},
    "result": {"metrics": dict, "seeds": list, "metric": str, "higher": bool, "diverged": list},
    "maps": {},  # those of older runs hold one example
    "pictures": {"pictures": list},
}
OTHERS = {"metrics": "metrics.jsonl", "answers": "answers.tsv"}  # what is no JSON


@dataclass(frozen=True)
class RunFolder:
    """One run on disk: `OUT/<experiment>/<variant>/`.

    `write("result", value)` puts `result.json` there, whole or not at all, and `read("result")` answers what
    it holds; likewise for each name in `FILES`. `metrics.jsonl` grows by a line for each step and lane.
    """

    path: Path

    def file(self, name: str) -> Path:
        """Where `name` stands: experiment, vocabulary, environment, result, maps, pictures, metrics or answers."""
        return Path(self.path) / OTHERS.get(name, f"{name}.json")

    @property
    def artifacts_pending(self) -> Path:
        """A file that is there while a run has a result and its maps, pictures and answers are not drawn yet."""
        return Path(self.path) / "undrawn"

    def has_run(self) -> bool:
        """Whether there is anything of a run."""
        files = [self.file(name) for name in (*FILES, "metrics")]
        return any(path.exists() for path in [*files, Path(self.path) / "checkpoints"])

    def read(self, name: str) -> dict[str, Any] | None:
        """What the file of that name holds; None where there is none.

        Raises FolderError where it is broken or another's, and where the folder has another format.
        """
        path = self.file(name)
        found = json_file.content(path)
        if found is None:
            return None
        value = json_file.unsealed(found, FILES[name], str(path), self._owner(name))
        if name == "experiment":
            _check_format(value.pop("format", 1), path)
        return value

    def write(self, name: str, value: dict[str, Any]) -> None:
        """Put `value` there as strict JSON, sealed; numbers that are not finite become null."""
        if name not in FILES:
            raise KeyError(name)
        if name == "experiment":
            value = value | {"format": FORMAT}
        # A map's hundreds of numbers want no line each.
        write_whole(
            self.file(name), json_file.sealed(value, None if name in ("maps", "pictures") else 1, self._owner(name))
        )

    def metrics(self) -> list[dict[str, Any]]:
        """The rows of `metrics.jsonl`, in order; a last line that was cut in the middle is left out.

        FolderError, naming file and line, where any other line is broken, lost or another run's.
        """
        return json_lines.read(self.file("metrics"), self._owner("metrics"))

    def append_metrics(self, added: Iterable[dict[str, Any]]) -> None:
        """Add a line for each row; a last line that was cut in the middle is cleared away first."""
        json_lines.append(self.file("metrics"), added, self._owner("metrics"))

    def truncate_metrics(self, step: int) -> None:
        """Drop the rows after `step`: a run that resumes there writes them again, and each stands once.

        Raises FolderError where rows up to there are lost.
        """
        json_lines.truncate(self.file("metrics"), step, self._owner("metrics"))

    def _owner(self, name: str) -> bytes:
        """What a file is sealed as: which part of the run that `experiment.json` describes."""
        run = b"" if name == "experiment" else checksum(json_file.content(self.file("experiment")) or b"")
        return name.encode() + run


def _check_format(found: object, path: Path) -> None:
    """Raise FolderError for a run folder of another format, with the version of attnlab that reads it."""
    if found != FORMAT:
        reader = f"attnlab {READERS[found]}" if isinstance(found, int) and found in READERS else "a newer attnlab"
        raise FolderError(f"{path}: run folder format {found!r}, expected {FORMAT}: {reader} reads this run")
