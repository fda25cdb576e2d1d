"""Checks that random command lines and experiments in JSON cause no traceback, no internal error and no hang.

Command lines follow the grammar of the commands or violate it slightly (`grammar.py`). They pass through the whole
command line, up to where a model would be trained, loaded or measured, or a file fetched or written. JSON passes
through the reader of a run's configuration. It is either refused in one line, or read. A configuration that was read
must stay the same when it is written and read again.
"""

from __future__ import annotations

import json
import signal
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from random import Random
from types import SimpleNamespace
from typing import Any
from unittest import mock

import hypothesis
from hypothesis import Phase
from hypothesis import strategies as st

from attnlab.console.errors import explain
from attnlab.console.escape import plain
from attnlab.lab.planning.matching import Matched
from attnlab.lab.runs.run_folder import FILES
from attnlab.lab.study import serialize
from attnlab.storage.json_file import FolderError, loads
from tests.faults import grammar
from tests.faults.called import called, inside, tree
from tests.faults.count import Count, Fault
from tests.faults.malformed import TEXT
from tests.lab.looked import FOUND
from tests.lab.parrot import parrot

FULL, SHORT = 100_000, 500
PART = 25  # cases that share one draw of hypothesis, which takes as long as one case
MANY = 40  # parts that hypothesis draws together; it remembers them, and more would fill the memory
LONGEST = 20.0  # seconds after which a case counts as hanging; an accepted case takes 0.01 s
MOST = 4100  # largest number of characters of an error message

SYMBOLS = {"source": ["1"], "target": ["2"], "map": None, "layers": None}
ANSWER = {"answers": [], "decoder": None, "cut": False, "notes": [], **SYMBOLS}
STUBS: dict[str, Any] = {
    "attnlab.lab.launch.run": lambda study, **how: _checked(study, how),
    "attnlab.lab.results.table.results_table": lambda folder: "a table",
    "attnlab.lab.planning.matching.matched": lambda study, ledger, quick=False: Matched(
        study.variants(quick), [], ledger
    ),
    "attnlab.lab.planning.costs.describe": lambda study, found: [{"variant": name} for name in found.experiments],
    "attnlab.lab.planning.roofline.placed": lambda found, machines: ["placed"],
    "attnlab.analysis.measure.machine": lambda: None,
    "attnlab.lab.reporting.pages.report": lambda folder: folder / "report.html",
    "attnlab.lab.trained.sample.sample": lambda run, text, *more: {**ANSWER, "answer": text},
    "attnlab.lab.trained.inspect.inspect": lambda run, text, *more: {**FOUND, "answer": text},
    "attnlab.lab.reporting.sample_page.write": lambda *what: None,
    "attnlab.lab.reporting.inspect_page.write": lambda *what: None,
    "attnlab.storage.json_file.write_whole": lambda *what: None,
    "attnlab.cli.commands.write_whole": lambda *what: None,
    "attnlab.cli.measure.write_whole": lambda *what: None,
    "attnlab.lab.trained.translate.trained": lambda run, *more, **named: parrot(),
    "attnlab.bench.parity.parity": lambda *what: [],
    "attnlab.bench.parity_table.parity_table": lambda *what: "a table",
    "attnlab.bench.measuring.bench": lambda *what: [],
    "attnlab.bench.measuring.record": lambda *what: {},
    "attnlab.bench.table.tables": lambda *what: ["a table"],
    "attnlab.bench.plot.draw": lambda *what: None,
    "attnlab.data.io.sources._find": lambda source: (source.set, source.file, "verified", "/nowhere"),
    "attnlab.system.device.use": lambda device, processes=1: None,
}


def run(count: int, seed: int, folder: Path) -> Count:
    """Runs `count` cases, two command lines for each experiment."""
    failures: list[str] = []
    right: Counter[str] = Counter()
    with inside(folder), ExitStack() as stubs:
        Path("small.py").write_text(TEXT)
        Path("one.py").write_text("from tests.small import EXPERIMENT as experiment\n")
        Path("broken.py").write_text("study = (")
        Path("runs/old").mkdir(parents=True)
        Path("runs/old/experiment.json").write_text("{}")
        for name, stub in STUBS.items():
            stubs.enter_context(mock.patch(name, stub))
        before = tree(Path())
        done = 0
        while done < count:
            began = done
            for typist in _drawn(MANY, f"{seed} {done}"):
                part = min(PART, count - done)
                failures += _typed(typist, part, right)
                done += part
            if tree(Path()) != before:
                failures.append(f"seed {seed}, cases {began} … {done}: something was written")
                before = tree(Path())
    told = " and ".join(f"{number:,} {what}" for what, number in sorted(right.items()))
    return Count(done, failures, f"{told} were right" if told else "")


def _drawn(count: int, seed: str) -> list[grammar.Typist]:
    """Returns `count` typists with the texts that hypothesis draws for them."""
    typists: list[grammar.Typist] = []

    @hypothesis.seed(seed)
    @hypothesis.settings(
        max_examples=count, database=None, deadline=None, phases=[Phase.generate],
        suppress_health_check=list(hypothesis.HealthCheck),  # pyright: ignore[reportArgumentType]
    )  # fmt: skip
    @hypothesis.given(st.lists(grammar.TEXT, min_size=10, max_size=20))
    def each(texts: list[str]) -> None:
        typists.append(grammar.Typist(Random(f"{seed} {len(typists)}"), texts))

    each()
    return typists


def _typed(typist: grammar.Typist, count: int, right: Counter[str]) -> list[str]:
    """Returns the failures among `count` cases of a typist, two command lines for each experiment.

    `right` counts the accepted cases.
    """
    failures = []
    for n in range(count):
        if n % 3 == 2:
            typed = typist.experiment()
            what, check = "experiments", partial(_read, typed)
        else:
            typed = typist.line()
            what, check = "lines", partial(_called, typed)
        try:
            with _alarm():
                right[what] += check()
        except KeyboardInterrupt:
            raise
        except _Hang:
            failures.append(f"longer than {LONGEST:g} s: {typed!r}")
        except BaseException as error:
            failures.append(f"{type(error).__name__}: {error}: {typed!r}")
    return failures


def _called(line: list[str]) -> bool:
    """Returns whether a command line is accepted. Raises Fault if its error message violates a requirement."""
    found = called(line)
    if found.code == 130:
        raise KeyboardInterrupt
    if found.code not in (0, 2, 3, 4):
        raise Fault(f"exit code {found.code}: {found.err}")
    if found.code == 0:
        return True
    if not found.err.endswith("\n") or found.err.count("\n") > 1 or len(found.err) > MOST:
        raise Fault(f"not one line, of at most {MOST} letters: {found.err!r}")
    if plain(found.line()) != found.line():
        raise Fault(f"a line that steers a terminal: {found.err!r}")
    if found.out:
        raise Fault(f"also on standard output: {found.out!r}")
    return False


def _read(text: str) -> bool:
    """Returns whether an experiment can be read as part of the file of a run.

    Raises Fault if the error message is wrong, or if the experiment changes when it is written and read again.
    """
    whole = f'{{"study": "", "question": "", "variant": "", "quick": false, "experiment": {text}}}'
    try:
        content = loads(whole.encode(errors="surrogatepass"), FILES["experiment"], "experiment.json")
        config = serialize.read(content["experiment"])
    except (ValueError, NotImplementedError, FolderError) as error:
        line, code = explain(error)
        if code not in (2, 4) or plain(line) != line:
            raise Fault(f"exit code {code}: {line}") from error
        return False
    again = serialize.read(json.loads(json.dumps(serialize.write(config), allow_nan=False)))
    if again != config:
        raise Fault(f"read as {config}, and that again as {again}")
    return True


def _checked(study: Any, how: dict[str, Any]) -> Any:
    """Checks that every variant can be written and read again, as `attnlab.lab.run` does first."""
    for experiment in study.variants(how["quick"]).values():
        if serialize.read(json.loads(json.dumps(serialize.write(experiment)))) != experiment:
            raise AssertionError(f"{experiment} is read as another")
    return SimpleNamespace(folder=Path("runs"), report=Path("runs/report.html"), code=0)


class _Hang(BaseException):
    """A case took too long."""


@contextmanager
def _alarm() -> Iterator[None]:
    def ring(*what: Any) -> None:
        raise _Hang

    before = signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, LONGEST)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
