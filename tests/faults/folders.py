"""Checks that malformed data, checkpoints and run folders give exit code 3 or 4 and one line that names the file.

The data are your own files, passed to `attnlab run` (`spoiltdata.py`). In a run folder, a file is removed, exchanged,
cut or replaced, and then a command reads the run (`spoiltruns.py`). The folder must hold the same files afterwards.
"""

from __future__ import annotations

import shutil
from functools import partial
from pathlib import Path
from unittest import mock

import numpy as np

from attnlab import MODELS
from attnlab.lab.trained.load import trained
from tests.faults.called import called, inside, tree
from tests.faults.count import Count, Fault, tried
from tests.faults.spoiltruns import CASES, EXPERIMENT, RUN, make

FULL = SHORT = len(CASES)


def run(count: int, seed: int, folder: Path) -> Count:
    """Runs `count` of the cases, drawn without repetition."""
    drawn = np.random.default_rng(seed).permutation(len(CASES))[:count]
    with inside(folder / "made"):
        Path("one.py").write_text("from tests.faults.spoiltruns import EXPERIMENT as experiment\n")
        with (
            mock.patch.dict(MODELS, bigram=EXPERIMENT.model),
            mock.patch("attnlab.lab.execution.variant.run_variant", _trained),
        ):
            make()
            trained(RUN)  # the unchanged run is valid
            failures, _ = tried(partial(_refused, folder=folder, drawn=drawn), len(drawn), seed)
    return Count(len(drawn), failures)


def _refused(n: int, folder: Path, drawn: np.ndarray) -> list[str]:
    case, place = CASES[drawn[n]], folder / str(n)
    shutil.copytree(folder / "made", place)
    with inside(place):
        case.harm()
        before = tree(Path())
        found = called(case.line)
        if tree(Path()) != before:
            raise Fault(f"{case.line}, for {case.words!r}: the folder is not as it was: {found}")
    if found.code != case.code or found.err.count("\n") != 1 or case.words not in found.err or found.out:
        raise Fault(f"{case.line}: exit {case.code} and one line with {case.words!r} expected: {found}")
    shutil.rmtree(place)
    return []


def _trained(*args: object) -> None:
    raise Fault("it would have been trained")
