"""The command line, called in this process: what it answered, what it printed, and what jax compiled for it."""

from __future__ import annotations

import contextlib
import io
import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from unittest import mock

import jax

from attnlab.cli.main import main

LOWERED = "/jax/core/compile/jaxpr_to_mlir_module_duration"  # what jax says of every program, before it compiles it


@dataclass(frozen=True)
class Called:
    """What a command left: its exit code, what stood on stdout and stderr, how many programs were made for it."""

    code: int
    out: str
    err: str
    compiled: int

    def line(self) -> str:
        """What stood on stderr, without the end of its line."""
        return self.err.removesuffix("\n")


def called(arguments: list[str], given: bytes = b"") -> Called:
    """The command with these arguments, `given` being its standard input. What it raises is raised here."""
    made: list[str] = []

    def hear(event: str, duration_secs: float, **more: object) -> None:
        if event == LOWERED:
            made.append(event)

    streams = [
        io.TextIOWrapper(io.BytesIO(each), "utf-8", "backslashreplace", newline="") for each in (given, b"", b"")
    ]
    jax.monitoring.register_event_duration_secs_listener(hear)
    try:
        with mock.patch.multiple(sys, stdin=streams[0], stdout=streams[1], stderr=streams[2]):
            code = main(arguments)
    finally:
        jax.monitoring.unregister_event_duration_listener(hear)
    out, err = (_text(stream) for stream in streams[1:])
    return Called(code, out, err, len(made))


def _text(stream: io.TextIOWrapper) -> str:
    stream.flush()
    return stream.buffer.getvalue().decode("utf-8", "replace")  # pyright: ignore[reportAttributeAccessIssue]


@contextlib.contextmanager
def inside(folder: Path) -> Iterator[Path]:
    """The folder as the working directory."""
    before = Path.cwd()
    folder.mkdir(parents=True, exist_ok=True)
    os.chdir(folder)
    try:
        yield folder
    finally:
        os.chdir(before)


def tree(folder: Path) -> dict[str, bytes | None]:
    """Every path below a folder with the bytes of the file there; None for what is no file that can be read."""
    found: dict[str, bytes | None] = {}
    for path in sorted(folder.rglob("*")):
        content = None
        with contextlib.suppress(OSError):
            content = path.read_bytes() if path.is_file() else None
        found[str(path.relative_to(folder))] = content
    return found
