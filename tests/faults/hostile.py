"""Checks that hostile data files, archives and run folders do no harm to a user who opens them.

The cases include arrays that are pickles, archives that lead out of their folder, decompression bombs, headers that
claim 2^60 elements, records of 100,000 brackets, and names that are scripts of HTML or of a terminal. Each file must be
refused in one line for the right reason, or shown harmlessly. Nothing of it may be executed, and nothing may be written
outside the given folder. At most a gigabyte of memory may be used. The cases are `hostilefiles.CASES` and
`hostilefolders.CASES`. The cases of each module run in one separate process.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import unicodedata
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

from tests.faults.count import Count
from tests.faults.harm import Place, hurried

FULL = SHORT = 30
MOST = 1 << 30  # largest allowed memory in bytes
ROOM = 3 << 30  # bytes of address space that a process may add, so that no bomb harms the machine
MODULES = ("tests.faults.hostilefiles", "tests.faults.hostilefolders")
STATUS = Path("/proc/self/status")


def run(count: int, seed: int, folder: Path) -> Count:
    """Runs the first `count` cases. Nothing is drawn at random."""
    left, failures, peaks, of = count, [], [], 0
    for module in MODULES:
        names = [*import_module(module).CASES][:left]
        left, of = left - len(names), of + len(names)
        for name, wrong, peak in _played(module, names, folder / module):
            peaks.append(peak)
            if wrong:
                failures.append(f"{name}: {wrong}")
    return Count(of, failures, f"at most {max(peaks, default=0) / 1e6:.0f} MB")


def _played(module: str, names: list[str], folder: Path) -> Iterator[tuple[str, str | None, int]]:
    """Yields the name of each case, what went wrong or None, and the peak memory by its end."""
    if not names:
        return
    folder.mkdir(parents=True)
    command = [sys.executable, "-m", "tests.faults.hostile", module, str(folder), *names]
    root = Path(__file__).parents[2]
    process = subprocess.run(
        command, cwd=root, capture_output=True, stdin=subprocess.DEVNULL, text=True, errors="replace", timeout=600
    )
    told = folder / "told.jsonl"
    found = [json.loads(line) for line in told.read_text().splitlines()] if told.exists() else []
    yield from found
    for name in names[len(found) :]:
        yield name, f"its process left with {process.returncode}: {process.stderr[-300:]!r}", 0
    for stream in (process.stdout, process.stderr):
        if line := next((line for line in stream.split("\n") if any(map(steers, line))), None):
            yield module, f"what steers a terminal reached it: {line[:200]!r}", 0


def steers(letter: str) -> bool:
    """Returns whether a terminal interprets a character, other than by showing it or starting a line."""
    kind = unicodedata.category(letter)
    turns = unicodedata.bidirectional(letter) in ("LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI")
    return turns or (kind in ("Cc", "Zl", "Zp") and letter not in "\n\t")


def play(module: str, folder: Path, names: list[str]) -> None:
    """Runs cases of a module in their separate process, and writes a line about each to `told.jsonl`."""
    cases = import_module(module).CASES
    here = _memory("VmSize")
    resource.setrlimit(resource.RLIMIT_AS, (here + ROOM, resource.RLIM_INFINITY))
    with (folder / "told.jsonl").open("w") as told:
        for n, name in enumerate(names):
            place, wrong = Place(folder / str(n)).made(), None
            try:
                with hurried():
                    cases[name](place)
            except Exception as error:
                wrong = f"{type(error).__name__}: {error}"
            peak = _memory("VmHWM")
            wrong = place.harm() or wrong or (f"{peak / 1e6:.0f} MB were held" if peak > MOST else None)
            print(json.dumps([name, wrong, peak]), file=told, flush=True)


def _memory(name: str) -> int:
    """Returns a memory size of this process in bytes. VmHWM is its peak memory."""
    return next(int(line.split()[1]) for line in STATUS.read_text().splitlines() if line.startswith(name)) * 1024


if __name__ == "__main__":
    play(sys.argv[1], Path(sys.argv[2]), sys.argv[3:])
