"""Calls the command line in this process and records its exit code, its output and the number of programs lowered."""

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

LOWERED = "/jax/core/compile/jaxpr_to_mlir_module_duration"  # JAX's event before it compiles a program


@dataclass(frozen=True)
class Called:
    """The result of a command: its exit code, its stdout and stderr, and the number of programs that JAX lowered."""

    code: int
    out: str
    err: str
    compiled: int

    def line(self) -> str:
        """Returns stderr without its final newline."""
        return self.err.removesuffix("\n")


def called(arguments: list[str], given: bytes = b"") -> Called:
    """Runs the command with these arguments and with `given` as its standard input. Exceptions are not caught."""
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
    """Makes the folder the working directory within the context. Creates the folder if it does not exist."""
    before = Path.cwd()
    folder.mkdir(parents=True, exist_ok=True)
    os.chdir(folder)
    try:
        yield folder
    finally:
        os.chdir(before)


def tree(folder: Path) -> dict[str, bytes | None]:
    """Returns every path below a folder with the bytes of its file, or with None if it is not a readable file."""
    found: dict[str, bytes | None] = {}
    for path in sorted(folder.rglob("*")):
        content = None
        with contextlib.suppress(OSError):
            content = path.read_bytes() if path.is_file() else None
        found[str(path.relative_to(folder))] = content
    return found
