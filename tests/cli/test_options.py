"""Checks that each command in the README, the docs and the experiments can be planned and its variants matched."""

import re
from contextlib import suppress
from pathlib import Path

import pytest

from attnlab.data.io.files import DataError
from attnlab.lab.planning.ledger import Ledger
from attnlab.lab.planning.matching import matched
from attnlab.lab.study.load import load_study
from attnlab.lab.study.overrides import apply

ROOT = Path(__file__).parents[2]
LEDGER = Ledger()  # shared, so that commands reuse each other's traces
FILES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")), *sorted((ROOT / "experiments").glob("*.py"))]
WRITTEN = "\n".join(path.read_text() for path in FILES)
# The file and the fields of each command, without options and surrounding text.
COMMANDS = sorted({
    (file, *(word.rstrip(".") for word in re.findall(r"(?<= )[a-z][\w.]*=[^\s(]+", rest)))
    for file, rest in re.findall(r"attnlab run experiments/(\w+\.py)([^`|\n]*)", WRITTEN)
})  # fmt: skip


every = pytest.mark.parametrize("command", COMMANDS, ids=" ".join)


def laid_out(file, *fields):
    return apply(load_study(ROOT / "experiments" / file), fields)


@every
def test_every_documented_command_can_be_planned(command):
    assert laid_out(*command).variants()


# A match of FLOPs traces every step of every width that is tried, which takes minutes.
@every
def test_every_documented_match_is_found(command):
    study = laid_out(*command)
    # Solving for a width needs data. The check ends here if they are not available.
    with suppress(DataError):
        assert list(matched(study, LEDGER).experiments) == list(study.variants())


def test_documented_commands_are_found():
    assert len(COMMANDS) > 70
    assert ("vit_vs_cnn.py", "task=figures") in COMMANDS
