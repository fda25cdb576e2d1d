"""Checks that a malformed configuration, override or option gives exit code 2 and one line that names it.

Each case is passed to the command line in this process. Nothing may be compiled or written. Standard output must stay
empty, and the files must stay unchanged.
"""

from __future__ import annotations

from pathlib import Path
from unittest import mock

import numpy as np

from tests.faults.called import Called, called, inside, tree
from tests.faults.count import Count, Fault, tried
from tests.faults.malformed import FILES, PLACES, TEXT
from tests.faults.malformed_options import OPTIONS
from tests.faults.malformed_overrides import OVERRIDES

Case = tuple[str | bytes, list[str], str]  # the experiment file, the command line, words of the error message

CASES: list[Case] = [
    *((text, ["run", "small.py", "--out", "runs"], words) for text, words in FILES),
    *((TEXT.replace(old, new), ["run", "small.py", "--out", "runs"], words) for old, new, words in PLACES),
    *((TEXT, ["run", "small.py", *given.split(" "), "--out", "runs"], words) for given, words in OVERRIDES),
    *((TEXT, line, words) for line, words in OPTIONS),
]  # fmt: skip
FULL, SHORT = len(CASES), 60


def run(count: int, seed: int, folder: Path) -> Count:
    """Runs `count` of the cases, drawn without repetition."""
    drawn = np.random.default_rng(seed).permutation(len(CASES))[:count]
    with inside(folder), mock.patch("attnlab.lab.execution.variant.run_variant", _trained):
        Path("runs/old").mkdir(parents=True)
        Path("runs/old/experiment.json").write_text("{}")
        failures, _ = tried(lambda n: _refused(*CASES[drawn[n]]), len(drawn), seed)
    return Count(len(drawn), failures)


def _refused(text: str | bytes, line: list[str], words: str) -> list[str]:
    # The name of a module that failed is not kept, so every case can use the same file name.
    Path("small.py").write_bytes(text if isinstance(text, bytes) else text.encode())
    before = tree(Path())
    found = called(line)
    if wrong := _wrong(found, words) or ("something was written" if tree(Path()) != before else None):
        raise Fault(f"{line}, of which {words!r} must be said: {wrong}: {found}")
    return []


def _wrong(found: Called, words: str) -> str | None:
    """Returns the first requirement that the result violates, or None if there is none."""
    checks = {
        "another exit code": found.code != 2,
        "more or less than one line": found.err.count("\n") != 1 or not found.err.endswith("\n"),
        "a traceback": "Traceback" in found.err,
        "something on standard output": found.out != "",
        "compiled": found.compiled > 0,
        f"without {words!r}": words not in found.err,
    }
    return next((what for what, is_so in checks.items() if is_so), None)


def _trained(*args: object) -> None:
    raise Fault("it would have been trained")
