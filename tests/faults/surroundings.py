"""Checks how a run reacts to its environment: limits, streams, locales, hang-ups, folders that disappear.

A run that can continue must end like the uninterrupted one. A run that cannot continue must end with one line that
names the cause. What it saved must then continue to the same bits. Nothing may print a traceback.
"""

from __future__ import annotations

import os
import shutil
import signal
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from attnlab.training.checkpoints import Checkpoints
from tests.faults.child import Child
from tests.faults.count import Count, Fault, tried
from tests.faults.uninterrupted import Uninterrupted, command, final, folder, uninterrupted

SHORT = 3
ASCII = "LC_ALL=C PYTHONUTF8=0 PYTHONCOERCECLOCALE=0"


@dataclass(frozen=True)
class Case:
    """A shell script `around` a run, and what happens to its folder or process `meanwhile`, after the first save.

    `out` is the folder that --out names, `code` the exit code, and `says` the words that its last line must contain.
    `goes_on` returns the folder of the runs afterwards, or None if nothing is left of it.
    """

    name: str
    around: str = 'exec "$@"'
    meanwhile: Callable[[Child, Path], object] | None = None
    out: str = "out"
    code: int = 0
    says: str = ""
    goes_on: Callable[[Path], Path | None] = lambda out: out
    rows: bool = field(default=True)  # whether all rows remain


def _sends(number: int) -> Callable[[Child, Path], object]:
    return lambda child, out: child.hit(number)


def _moved(out: Path) -> Path:
    return out.with_name("moved")


def _without_rows(child: Child, out: Path) -> None:
    (folder(out) / "metrics.jsonl").unlink()
    child.hit(signal.SIGTERM)


LOCALE = f'exec env {ASCII} "$@"'
CASES = (
    Case("a limit on files", 'ulimit -f 8; exec "$@"', code=4, says="File too large"),
    Case("an ASCII locale", LOCALE, out="ümlaut"),
    Case(
        "its folder is moved", meanwhile=lambda child, out: out.rename(_moved(out)),
        code=4, says="was moved or removed during training", goes_on=_moved,
    ),
    Case("a terminal that is closed", meanwhile=_sends(signal.SIGHUP), code=129, says="stopped by SIGHUP at step "),
    Case("nohup", 'trap "" HUP; exec "$@"', meanwhile=_sends(signal.SIGHUP)),
    Case("a scheduler's warning", meanwhile=_sends(signal.SIGUSR1), code=138, says="stopped by SIGUSR1 at step "),
    Case("standard error is closed", 'exec "$@" 2>&-'),
    Case("standard output is closed", 'exec "$@" >&-'),
    Case("standard error is full", 'exec "$@" 2>/dev/full'),
    Case(
        "standard output is full", 'exec "$@" >/dev/full',
        code=4, says="cannot write to standard output: No space left on device",
    ),
    Case("its reader goes away", '("$@" 2>&1 1>/dev/null; echo $? >&3) 3>/dev/null | head -1 >/dev/null'),
    Case("a name that is no UTF-8", out=os.fsdecode(b"\xff\xfe")),
    Case("a name of two lines", out="a\nb"),
    Case(
        "its folder is removed", meanwhile=lambda child, out: shutil.rmtree(out, ignore_errors=True),
        code=4, says="was moved or removed during training", goes_on=lambda out: None,
    ),
    Case("its checkpoints are removed", meanwhile=lambda child, out: shutil.rmtree(folder(out) / "checkpoints")),
    Case(
        "its rows are removed", meanwhile=_without_rows, code=143, says="stopped by SIGTERM at step ", rows=False,
    ),
    Case("no home and nowhere for temporary files", 'exec env -u HOME TMPDIR=/nowhere XDG_CACHE_HOME=/nowhere "$@"'),
    Case("a home that is not there", 'exec env HOME=/nowhere "$@"'),
    Case(
        "its working directory is gone", 'd=$(mktemp -d); cd "$d"; rmdir "$d"; exec "$@"',
        code=4, says="the working directory no longer exists", goes_on=lambda out: None,
    ),
)  # fmt: skip
FULL = len(CASES)


def run(count: int, seed: int, folder: Path) -> Count:
    """Runs the first `count` cases, two at a time."""
    whole = uninterrupted()
    chosen = CASES[:count]
    failures, words = tried(lambda n: _case(whole, chosen[n], folder / str(n)), len(chosen), seed, together=2)
    return Count(len(chosen), failures, ", ".join(words))


def _case(whole: Uninterrupted, case: Case, home: Path) -> Iterator[str]:
    """Runs a case, and continues the run if it ended early. Yields the name of the case."""
    out = home / case.out
    with Child(command(out), home / "log", whole.cache, case.around) as child:
        if case.meanwhile is not None:
            if not child.meets(lambda: child.said("saved at step 20")):
                raise Fault(f"{case.name}: ended before it: {child.lines()}")
            case.meanwhile(child, out)
        code, lines = child.end(), child.lines() or [""]
    if code != case.code or case.says not in lines[-1]:
        raise Fault(f"{case.name}: exit {code}, not {case.code}, after {lines[-1]!r}")
    if traces := [line for line in lines if line.startswith(("Traceback", "Exception", "  File "))]:
        raise Fault(f"{case.name}: {len(lines)} lines, among them {traces[0]!r}")
    if (place := case.goes_on(out)) is None:
        if folder(out).exists():
            raise Fault(f"{case.name}: {sorted(folder(out).rglob('*'))} was made again")
        yield case.name
        return
    if code:
        with Child(command(place), home / "again", whole.cache) as child:
            child.ends_well()
            if child.said("skipped: checkpoint"):
                raise Fault(f"{case.name}: a checkpoint was skipped: {home / 'again'}")
    if case.rows:
        whole.compare(place)
    elif {name: value.tobytes() for name, value in final(folder(place)).items()} != {
        name: value.tobytes() for name, value in whole.outcome["states"].items()
    }:
        raise Fault(f"{case.name}: its last state differs, of {Checkpoints(folder(place) / 'checkpoints').steps()}")
    yield case.name
