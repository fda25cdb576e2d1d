"""A run's folder on disk: what its files are called and what they hold."""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Iterable
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import attnlab
from attnlab.lab import jsonfile
from attnlab.lab.jsonfile import Fields, FolderError, dumps, encoded, write_whole

__all__ = ["FILES", "FolderError", "RunFolder", "environment", "folder_name"]

# The fields that each file must hold. More may stand beside them.
FILES: dict[str, Fields] = {
    "experiment": {"study": str, "question": str, "variant": str, "quick": bool, "experiment": dict},
    "environment": {},
    "result": {"metrics": dict, "seeds": list, "metric": str, "higher": bool, "diverged": list},
    "maps": {},  # those of older runs hold one example
}
ROW: Fields = {"step": int, "seed": int, "learning_rate": (int, float)}
PACKAGES = ("jax", "jaxlib", "flax", "optax", "numpy")


@dataclass(frozen=True)
class RunFolder:
    """One run on disk: `OUT/<experiment>/<variant>/`.

    `write("result", value)` puts `result.json` there, whole or not at all, and `read("result")` answers what
    it holds; likewise for each name in `FILES`. `metrics.jsonl` grows by a line for each step and lane.
    """

    path: Path

    def file(self, name: str) -> Path:
        """Where `name` stands: experiment, environment, result, maps or metrics."""
        return Path(self.path) / ("metrics.jsonl" if name == "metrics" else f"{name}.json")

    def read(self, name: str) -> dict[str, Any] | None:
        """What the file of that name holds; None where there is none. FolderError where it is broken."""
        path = self.file(name)
        found = jsonfile.content(path)
        return None if found is None else jsonfile.loads(found, FILES[name], str(path))

    def write(self, name: str, value: dict[str, Any]) -> None:
        """Put `value` there as strict JSON; numbers that are not finite become null."""
        if name not in FILES:
            raise KeyError(name)
        # A map's hundreds of numbers want no line each.
        write_whole(self.file(name), dumps(value, indent=None if name == "maps" else 1) + "\n")

    def metrics(self) -> list[dict[str, Any]]:
        """The rows of `metrics.jsonl`, in order; a last line that was cut in the middle is left out.

        FolderError, naming file and line, where any other line is broken.
        """
        path = self.file("metrics")
        lines = (jsonfile.content(path) or b"").rstrip().split(b"\n")
        if not _whole(lines[-1]):
            lines.pop()
        return [jsonfile.loads(line, ROW, f"{path}, line {n}") for n, line in enumerate(lines, 1)]

    def append_metrics(self, rows: Iterable[dict[str, Any]]) -> None:
        """Add a line for each row; a last line that was cut in the middle is cleared away first."""
        path = self.file("metrics")
        with jsonfile.named(path):
            path.parent.mkdir(parents=True, exist_ok=True)
            with path.open("a+b") as file:
                _mend(file)
                file.write(encoded("".join(dumps(row) + "\n" for row in rows)))
                jsonfile.settle(file)

    def truncate_metrics(self, step: int) -> None:
        """Drop the rows after `step`: a run that resumes there writes them again, and each stands once."""
        if self.file("metrics").exists():
            kept = [row for row in self.metrics() if row["step"] <= step]
            write_whole(self.file("metrics"), "".join(dumps(row) + "\n" for row in kept))


def folder_name(name: str) -> str:
    """`name`, if a folder may be called so on every system; else ValueError.

    >>> folder_name("gated-linear")
    'gated-linear'
    """
    edges = not name or name != name.strip() or name[0] == "." or len(encoded(name)) > 100
    if edges or any(letter in '/\\:*?"<>|' or not letter.isprintable() for letter in name):
        raise ValueError(
            f'{name=} cannot name a folder: at most 100 bytes, with no separator, none of :*?"<>|, '
            "no dot at the start, no space at an end and nothing unprintable"
        )
    return name


def environment() -> dict[str, Any]:
    """What a reader needs to repeat a run, and nothing about who ran it or where.

    Versions; `platform` and `device` as jax names them ("cpu", "gpu"); the cores this process may use; the
    system and its instruction set. Imports jax.
    """
    import jax

    device = jax.devices()[0]
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return {
        "attnlab": attnlab.__version__,
        **{package: version(package) for package in PACKAGES},
        "python": platform.python_version(),
        "platform": device.platform,
        "device": device.device_kind,
        "cores": cores,
        "machine": f"{platform.system()} {platform.machine()}",
    }


def _whole(line: bytes) -> bool:
    try:
        return isinstance(json.loads(line), dict)
    except (ValueError, RecursionError):
        return False


def _mend(file: Any) -> None:
    """Make the file end with a whole line, so that the next does not join a cut one."""
    size = file.seek(0, os.SEEK_END)
    file.seek(max(size - 1, 0))
    if file.read(1) not in (b"", b"\n"):
        file.seek(0)
        lines = file.read().split(b"\n")
        # Some lack no more than their end.
        file.write(b"\n") if _whole(lines[-1]) else file.truncate(size - len(lines[-1]))
