"""Checks that flipped bits, truncated files and exchanged files are detected or have no effect.

One bit is flipped at every byte, and files are cut at every length or exchanged with others. This is done to a
checkpoint, to a file of a data set (plain and gzipped) and to the files of a run. Either an error in one line names the
file, or the values that are read equal those that were written, bit for bit. A resume continues from the previous
checkpoint and names the one that it skips. It refuses to continue if rows were lost.
"""

from __future__ import annotations

import gzip
import hashlib
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path

import numpy as np

from attnlab.data.io import published
from attnlab.data.io.published import Source
from attnlab.lab.runs.run_folder import RunFolder
from attnlab.training.checkpoints import CheckpointError
from tests.faults import saves
from tests.faults.count import Count

FULL, SHORT = 1_000_000, 150  # the full form tests every byte and length, which are fewer
CONTENT = "a line\nañother\n".encode() * 20
SOURCE = Source("toys", "toys.txt", hashlib.sha256(CONTENT).hexdigest(), len(CONTENT), "https://example.org/toys.txt")
ROWS = saves.rows(1, 2, 3)


@dataclass(frozen=True)
class Harm:
    """A change of a file or folder: "flipped" or "cut" at byte `at`, or "exchanged" with `other`.

    `intact(home)` returns whether everything that the file belongs to reads as it was written.
    """

    intact: Callable[[Path], bool]
    what: str
    path: Path
    at: int = 0
    other: Path | None = None

    @contextmanager
    def done(self, bit: int) -> Iterator[None]:
        """Applies the change within the context and reverts it afterwards."""
        if self.other is not None:
            _exchange(self.path, self.other)
            yield
            _exchange(self.path, self.other)
            return
        content = self.path.read_bytes()
        rest = b"" if self.what == "cut" else bytes([content[self.at] ^ 1 << bit]) + content[self.at + 1 :]
        self.path.write_bytes(content[: self.at] + rest)
        yield
        self.path.write_bytes(content)

    def met(self, home: Path) -> str:
        """Reads the files. Returns "intact" or "refused", as required, or else a description of what went wrong."""
        try:
            return "intact" if self.intact(home) else "in silence, something else is read"
        except Exception as error:
            line = str(error)
            # If files are exchanged, the message names one of them, so only the folder is compared.
            named = self.path if self.other is None else self.path.parent
            if getattr(error, "exit_code", None) in (3, 4) and "\n" not in line and str(named) in line:
                return "refused"
            return f"{type(error).__name__}: {line}"


def run(count: int, seed: int, folder: Path) -> Count:
    """Applies `count` changes drawn by the seed, about equally many per file, or all changes if there are no more."""
    _write(folder)
    harms, met, failures = list(_harms(folder)), Counter(), []
    for n in _drawn(harms, count, seed):
        harm, bit = harms[n], int(np.random.default_rng([seed, n]).integers(8))
        with harm.done(bit):
            said = harm.met(folder)
        met[said] += 1
        if said not in ("intact", "refused"):
            how = f"{harm.at}, bit {bit}" if harm.other is None else f"{harm.other.relative_to(folder)}"
            failures.append(f"seed {seed}: {harm.path.relative_to(folder)} {harm.what}, {how}: {said}")
    note = f"{met['refused']} refused by name, {met['intact']} read as written, of {len(harms)} ways"
    return Count(met.total(), failures, note)


def _drawn(harms: list[Harm], count: int, seed: int) -> list[int]:
    """Returns indices of changes: first one for every kind and file, then another for each, and so on."""
    turns, ranked = Counter(), []
    for n in np.random.default_rng(seed).permutation(len(harms)).tolist():
        kind = harms[n].what, harms[n].path if harms[n].other is None else None
        ranked.append((turns[kind], n))
        turns[kind] += 1
    return [n for _, n in sorted(ranked)[:count]]


def _harms(home: Path) -> Iterator[Harm]:
    """Yields every change."""
    run, (before, last) = home / "run", (home / "run" / "checkpoints" / step for step in "12")
    for intact, root in ((_checkpoint, last), (_data, home / "data"), (_run, run)):
        paths = sorted(path for path in root.rglob("*") if path.is_file() and (root != run or path.parent == run))
        for path in paths:
            for at in range(path.stat().st_size):
                yield from (Harm(intact, what, path, at) for what in ("flipped", "cut"))
        pairs = list(combinations(paths, 2))
        # Files of the same name in the previous checkpoint and in the other run.
        pairs += [
            (path, place / path.relative_to(root)) for path in paths for place in (before, home / "linear")
            if (place / path.relative_to(root)).exists()
        ]  # fmt: skip
        yield from (Harm(intact, "exchanged", one, other=two) for one, two in pairs)
    for other in (before, home / "linear" / "checkpoints" / "2", home / "other data" / "checkpoints" / "2"):
        yield Harm(_checkpoint, "exchanged", last, other=other)


def _files(variant: str) -> dict[str, dict]:
    environment = saves.ENVIRONMENT | {"variant": variant}
    return {
        "experiment": saves.experiment(variant),
        "environment": environment,
        "vocabulary": saves.VOCABULARY,
        "result": saves.RESULT,
        "maps": saves.MAPS,
    }


def _write(home: Path) -> None:
    """Writes the run to be changed, one of another variant, one on other data, and the data file, plain and gzipped."""
    for name, identity in (("run", {}), ("linear", {"configuration": "0"}), ("other data", {"data": "0"})):
        folder = RunFolder(home / name)
        for file, value in _files(name).items():
            folder.write(file, value)
        folder.append_metrics(ROWS)
        kept = saves.checkpoints(folder.path / "checkpoints", identity=saves.IDENTITY | identity)
        for step in (1, 2):
            kept.save(step, saves.state(step), {"seconds": step})
    (home / "data").mkdir()
    (home / "data" / "toys.txt").write_bytes(CONTENT)
    (home / "data" / "toys.txt.gz").write_bytes(gzip.compress(CONTENT, mtime=0))


def _checkpoint(home: Path) -> bool:
    """Returns whether a resume restores the last checkpoint as it was written.

    Raises CheckpointError if the resume restores the previous checkpoint.
    """
    passed: list[str] = []
    kept = saves.checkpoints(home / "run" / "checkpoints", note=passed.append)
    step, values, facts = kept.restore(saves.state(0))  # pyright: ignore[reportGeneralTypeIssues]
    as_written = saves.same(values, saves.state(step)) and facts == {"seconds": step}
    if passed and as_written and step == 1:
        raise CheckpointError(*passed)
    return as_written and step == 2


def _data(home: Path) -> bool:
    return all(published.verified(SOURCE, path) == CONTENT for path in (home / "data").iterdir())


def _run(home: Path) -> bool:
    """Returns whether all files of a run read as they were written.

    If the rows differ, removes the rows after the last step, as a resume does. This raises an error if rows are lost.
    """
    folder = RunFolder(home / "run")
    written, found = _files("run"), {name: folder.read(name) for name in _files("run")}
    rows = folder.metrics()
    if rows != ROWS:
        folder.truncate_metrics(ROWS[-1]["step"])
    return found == written and rows == ROWS


def _exchange(one: Path, two: Path) -> None:
    aside = one.with_name(".aside")
    one.rename(aside)
    two.rename(one)
    aside.rename(two)
