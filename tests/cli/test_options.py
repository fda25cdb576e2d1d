"""Every command in the README and the experiments can be planned: its fields exist, and variants can be matched."""

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
LEDGER = Ledger()  # what one command traces another need not
FILES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")), *sorted((ROOT / "experiments").glob("*.py"))]
WRITTEN = "\n".join(path.read_text() for path in FILES)
# The file and its fields; options and what is said beside it are left out.
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


# In FLOPs every step of every width tried is traced: minutes.
@every
def test_every_documented_match_is_found(command):
    study = laid_out(*command)
    # A width is solved for on data: where these are not at hand, that is left.
    with suppress(DataError):
        assert list(matched(study, LEDGER).experiments) == list(study.variants())


def test_documented_commands_are_found():
    assert len(COMMANDS) > 70
    assert ("vit_vs_cnn.py", "task=figures") in COMMANDS
