"""Injects a fault at every call by which a save changes files: a kill before or after it, an error, a short write.

Afterwards, either the old files must be intact or the new ones complete. An error must be reported in a single line
that names the file and the reason, and by nothing else. A later save into the same folder must succeed. The operations
are the save of a checkpoint, which orbax writes from threads of C++, and of the files of a run (`saves.py`). A library
that is loaded before the C library intercepts the calls (`writes.c`). The cases run in children of a process that has
imported everything and runs one thread, so that it may fork.
"""

from __future__ import annotations

import ctypes
import errno
import json
import os
import re
import select
import shutil
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import reduce
from itertools import product
from operator import and_
from pathlib import Path
from typing import Any
from unittest import SkipTest

import numpy as np

from tests.faults.count import Count
from tests.faults.saves import DEEDS

FULL, SHORT = 10_000, 12  # the full form tests every call and fault, which are fewer
ROOT = Path(__file__).parents[2]
PATIENCE = 60.0  # seconds after which a child counts as hanging
KINDS = {
    "": 0, "killed before": -1, "killed after": -2, "short write": -3, "half a write, then full": -4,
    "ENOSPC": errno.ENOSPC, "EIO": errno.EIO, "EACCES": errno.EACCES,
}  # fmt: skip
NAMES = re.compile(r"[0-9a-f]{32}|(?<=\.)\d+(?=\.part)")  # parts of names that differ each time
CUTS = ("short write", "half a write, then full")  # faults that only writes can have
REASONS = {name: os.strerror(errno.ENOSPC if name in CUTS else max(number, 0)) for name, number in KINDS.items()}


@dataclass(frozen=True)
class Case:
    """A deed, and the fault at one of its calls that match `call`. Without a `kind` there is no fault."""

    deed: str
    kind: str = ""
    call: str = ""
    point: int = 0

    def __str__(self):
        return f"{self.deed}, {self.kind} at call {self.point} of {self.call!r}"


@dataclass(frozen=True)
class Outcome:
    """The calls that were made, with a star before the one that failed, and what was wrong afterwards."""

    calls: list[str]
    wrong: list[str]


def run(count: int, seed: int, folder: Path) -> Count:
    """Tests `count` pairs of a call and a fault, drawn by the seed, or all pairs if there are no more."""
    failures, met = [], Counter()
    with _server(folder) as ask:
        cases = list(_cases(ask))
        drawn = sorted(np.random.default_rng(seed).permutation(len(cases))[:count])
        for case in [cases[n] for n in drawn]:
            # Threads divide the writes differently each time, so a call may not occur.
            tries = (outcome for outcome in map(ask, [case] * 3) if any(call[0] == "*" for call in outcome.calls))
            outcome = next(tries, None)
            met[case.deed if outcome else "never met"] += 1
            if outcome is not None and outcome.wrong:
                failures.append(f"{case}: {'; '.join(outcome.wrong)}")
    never = met.pop("never met", 0)
    tried = ", ".join(f"{deed} {times}" for deed, times in met.items())
    note = f"of {len(cases)} pairs of a call and a fault ({tried})" + (f", {never} never met" if never else "")
    return Count(met.total(), failures, note)


def _cases(ask: Callable[[Case], Outcome]) -> Iterator[Case]:
    """Yields every pair of a call and a fault, for the calls that a deed makes every time without a fault."""
    for deed in DEEDS:
        outcomes = [ask(Case(deed)) for _ in range(2)]
        if wrong := [said for outcome in outcomes for said in outcome.wrong]:
            raise AssertionError(f"{deed}, without a fault: {wrong[0]}")
        calls = reduce(and_, (Counter(NAMES.sub("*", call[2:]) for call in outcome.calls) for outcome in outcomes))
        for call, kind in product(calls, list(KINDS)[1:]):
            if call.startswith("write ") or kind not in CUTS:
                yield from (Case(deed, kind, call, n + 1) for n in range(calls[call]))


@contextmanager
def _server(folder: Path) -> Iterator[Callable[[Case], Outcome]]:
    """Starts a process that runs cases in the folder, one after another. Yields the function that runs a case."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None or not sys.platform.startswith("linux"):
        raise SkipTest("calls are met by a library in C, on Linux")
    folder.mkdir(parents=True, exist_ok=True)
    source, library = Path(__file__).with_suffix(".c"), folder.absolute() / "writes.so"
    subprocess.run([compiler, "-shared", "-fPIC", "-O1", "-o", library, source, "-ldl", "-lpthread"], check=True)
    # The process runs one thread, so that it may fork.
    more = {"LD_PRELOAD": str(library), "JAX_PLATFORMS": "cpu", "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
    with (folder / "errors").open("w") as errors, subprocess.Popen(
        [sys.executable, "-m", "tests.faults.writes", str(folder.absolute())], cwd=ROOT, env=os.environ | more,
        text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors,
    ) as process:  # fmt: skip

        def ask(case: Case) -> Outcome:
            print(json.dumps(asdict(case)), file=process.stdin, flush=True)
            answer = process.stdout.readline()  # pyright: ignore[reportOptionalMemberAccess]
            if not answer:
                raise AssertionError(f"the process that tries them ended: {(folder / 'errors').read_text()[-2000:]}")
            return Outcome(**json.loads(answer))

        try:
            yield ask
        finally:
            process.kill()


def serve(home: Path) -> None:
    """Runs each case that a line of standard input describes, and writes a line of JSON about it."""
    import orbax.checkpoint  # noqa: F401  here once, not in every child

    if len(os.listdir("/proc/self/task")) > 1:
        raise RuntimeError("a process of several threads may not fork")
    for deed in DEEDS:
        _forked(DEEDS[deed].before, home / deed)
    for line in sys.stdin:
        print(json.dumps(asdict(_tried(Case(**json.loads(line)), home))), flush=True)


def _tried(case: Case, home: Path) -> Outcome:
    folder, log = home / "tried" / case.deed, home / "calls"
    shutil.rmtree(folder.parent, ignore_errors=True)
    log.unlink(missing_ok=True)
    shutil.copytree(home / case.deed, folder)
    try:
        wrong = _forked(_done, case, folder, log)
        if wrong is None and case.kind.startswith("killed"):
            # Another process continues.
            wrong = _forked(_left, case, folder, False)
    except TimeoutError:
        wrong = ["hangs"]
    return Outcome(log.read_text().splitlines(), ["dies"] if wrong is None else wrong)


def _forked(work: Callable, *arguments: Any) -> Any:
    """Returns the result of `work` in a child, or None if the child died."""
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        try:
            with os.fdopen(writing, "w") as answer:
                json.dump(work(*arguments), answer)
        finally:
            os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as answer:
        hangs = not select.select([answer], [], [], PATIENCE)[0]
        if hangs:
            os.kill(child, signal.SIGKILL)
        found = answer.read()
    os.waitpid(child, 0)
    if hangs:
        raise TimeoutError
    return json.loads(found) if found else None


def _done(case: Case, folder: Path, log: Path) -> list[str]:
    """Performs the deed with its fault, and returns what is wrong afterwards."""
    deed, faults, wrong = DEEDS[case.deed], ctypes.CDLL(None).faults, []
    path, listed, call = str(folder), str(log).encode(), case.call.encode()
    errors, said = os.open("/proc/self/fd/2", os.O_RDONLY), os.fstat(2).st_size
    faults(path.encode(), listed, call, ctypes.c_long(case.point), KINDS[case.kind])
    try:
        deed.do(folder)
    except Exception as error:
        line = f"{type(error).__name__}: {error}"
        if type(error) is not deed.error:
            wrong.append(f"no {deed.error.__name__}: {line}")
        elif "\n" in line or path not in line or REASONS[case.kind] not in line:
            wrong.append(f"file and reason are not told in one line: {line}")
        # Only errors count. A thread of tensorstore may print a late message that nothing waits for it any more.
        if b"ERROR" in (more := os.pread(errors, 1 << 16, said)):
            wrong.append(f"more is printed: {more[:200]}")
        new = False
    else:
        new = True
        if KINDS[case.kind] > 0:
            wrong.append("the error is not told")
    faults(b"", listed, b"", ctypes.c_long(0), 0)
    return wrong + _left(case, folder, new)


def _left(case: Case, folder: Path, new: bool) -> list[str]:
    """Returns what is wrong with the files that are left, and then with a later save."""
    deed, wrong = DEEDS[case.deed], []
    try:
        wrong += deed.found(folder, new)
        deed.do(folder)
        wrong += [f"afterwards {said}" for said in deed.found(folder, True)]
    except Exception as error:
        wrong.append(f"{type(error).__name__}: {error}")
    return wrong


if __name__ == "__main__":
    serve(Path(sys.argv[1]))
