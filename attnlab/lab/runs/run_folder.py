"""The folder of a run on disk: the names and contents of its files."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from attnlab.documented import Documented
from attnlab.registry import unknown
from attnlab.storage import json_file, json_lines
from attnlab.storage.checksum import checksum
from attnlab.storage.json_file import Fields, FolderError, write_whole

JsonObject = dict[str, Any]  # the content of a JSON file; its fields are checked where it is read
FORMAT = 2  # the format of run folders, which `experiment.json` records
READERS = {1: "0.1.0"}  # older formats, with the version of attnlab that reads each
Record = dict[str, Any]  # an object in a file: FILES checks its fields, and whoever reads another one checks its value
# The fields that each file must hold, with their types. A file may hold more.
FILES: dict[str, Fields] = {
    "experiment": {"study": str, "question": str, "variant": str, "quick": bool, "experiment": dict},
    "vocabulary": {},
    "environment": {},
    "result": {"metrics": dict, "seeds": list, "metric": str, "higher": bool, "diverged": list},
    "maps": {},  # in older runs it holds a single example
    "pictures": {"pictures": list},
}
OTHERS = {"metrics": "metrics.jsonl", "answers": "answers.tsv"}  # files that are not JSON


@dataclass(frozen=True)
class RunFolder(metaclass=Documented):
    """One run on disk: `OUT/<experiment>/<variant>/`.

    `write("result", value)` writes `result.json` atomically, and `read("result")` returns its content. The same holds
    for each name in `FILES`. `metrics.jsonl` grows by a line for each step and lane.
    """

    path: Path
    """The folder. It need not exist."""

    def file(self, name: str) -> Path:
        """Return the path of a file.

        Args:
            name: experiment, vocabulary, environment, result, maps, pictures, metrics or answers.
        """
        return Path(self.path) / OTHERS.get(name, f"{name}.json")

    @property
    def artifacts_pending(self) -> Path:
        """The marker file that exists while a run has a result, but not yet its maps, pictures and answers."""
        return Path(self.path) / "undrawn"

    def has_run(self) -> bool:
        """Return whether the folder holds any file or checkpoint of a run."""
        files = [self.file(name) for name in (*FILES, "metrics")]
        return any(path.exists() for path in [*files, Path(self.path) / "checkpoints"])

    def read(self, name: str) -> JsonObject | None:
        """Read a file of the run.

        Args:
            name: a name in `FILES`.

        Returns:
            The content, or None if the file does not exist.

        Raises:
            FolderError: if the file is damaged or belongs to another run, or the folder has another format.
            KeyError: if `name` is not in `FILES`.
        """
        _check_name(name)
        path = self.file(name)
        found = json_file.content(path)
        if found is None:
            return None
        load = lambda needed: json_file.load_with_checksum(found, needed, str(path), self._owner(name))
        if name != "experiment":
            return load(FILES[name])
        # The format is checked first, because another format may have other fields.
        _check_format(load({}).get("format", 1), path)
        return {field: value for field, value in load(FILES[name]).items() if field != "format"}

    def write(self, name: str, value: JsonObject) -> None:
        """Write a file of the run atomically, as strict JSON with a checksum.

        Args:
            name: a name in `FILES`.
            value: the content. Numbers that are not finite become null.

        Raises:
            KeyError: if `name` is not in `FILES`.
        """
        _check_name(name)
        if name == "experiment":
            value = value | {"format": FORMAT}
        # Maps and pictures hold many numbers, so they are written without indentation.
        write_whole(
            self.file(name),
            json_file.dump_with_checksum(value, None if name in ("maps", "pictures") else 1, self._owner(name)),
        )

    def metrics(self) -> list[JsonObject]:
        """Return the rows of `metrics.jsonl`, in order. An incomplete last line is left out.

        Raises:
            FolderError: if any other line is damaged, missing or another run's. The message names file and line.
        """
        return json_lines.read(self.file("metrics"), self._owner("metrics"))

    def append_metrics(self, added: Iterable[JsonObject]) -> None:
        """Append a line for each row to `metrics.jsonl`. An incomplete last line is removed first."""
        json_lines.append(self.file("metrics"), added, self._owner("metrics"))

    def truncate_metrics(self, step: int) -> None:
        """Remove the rows after `step`, because a run that resumes there writes them again.

        Raises:
            FolderError: if rows up to that step are missing.
        """
        json_lines.truncate(self.file("metrics"), step, self._owner("metrics"))

    def _owner(self, name: str) -> bytes:
        """Return what the checksum of a file includes: its name, and the run that `experiment.json` describes."""
        run = b"" if name == "experiment" else checksum(json_file.content(self.file("experiment")) or b"")
        return name.encode() + run


def _check_name(name: str) -> None:
    """Raise KeyError if a run folder has no JSON file of that name."""
    if name not in FILES:
        hint = "; metrics() reads metrics.jsonl" if name == "metrics" else ""
        raise KeyError(unknown(f"{name!r} is no JSON file of a run", name, FILES) + hint)


def _check_format(found: object, path: Path) -> None:
    """Raise FolderError if a run folder has another format. The message names the version of attnlab that reads it."""
    if found != FORMAT:
        reader = f"attnlab {READERS[found]}" if isinstance(found, int) and found in READERS else "a newer attnlab"
        raise FolderError(f"{path}: run folder format {found!r}, expected {FORMAT}; use {reader} to read this run")
