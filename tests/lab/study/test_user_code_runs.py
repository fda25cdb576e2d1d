"""Runs of user code on the command line, where `--code FILE` defines the code again."""

import io
import sys
from pathlib import Path

import pytest

import attnlab
from attnlab.cli.main import main
from attnlab.lab import load
from attnlab.lab.study.load import load_code
from attnlab.lab.study.study import change
from tests.lab import unfinished
from tests.small import EXPERIMENT

OWN = """from dataclasses import dataclass

import attnlab
from attnlab.mechanisms import Linear, Mechanism, Wrapper


@dataclass(frozen=True)
class Mine(Wrapper):
    '''A mechanism of your own.'''
    mechanism: Mechanism = Linear()

    def twice(self):
        return 2


attnlab.MECHANISMS["mine"] = Mine()
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Returns the folder of a run whose mechanism only `own.py` defines. Both are in the working directory."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "own.py").write_text(OWN)
    tables = dict(attnlab.MECHANISMS)
    load_code("own.py")
    unfinished.run(tmp_path / "base", change(EXPERIMENT, **{"model.mechanism": attnlab.MECHANISMS["mine"]}))
    del attnlab.MECHANISMS["mine"]
    yield tmp_path / "base"
    for name in attnlab.MECHANISMS.keys() - tables.keys():
        del attnlab.MECHANISMS[name]


ASKED = [["sample", "base", "--input", "1 2"], ["inspect", "base", "--input", "1 2"], ["translate", "base"]]


@pytest.mark.parametrize("asked", ASKED, ids=lambda asked: asked[0])
def test_a_run_is_loaded_with_the_file_that_defines_its_code(folder, asked, monkeypatch, capsys):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"1 2\n")))
    assert main(asked) == 4
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("attnlab: error: base/experiment.json: model.mechanism='mine' is not known; ")
    assert "(on the command line in a Python file given by --code FILE, in Python by an import)" in line
    assert line.endswith("; it was trained with Mine, of own.py")
    assert main([*asked, "--code", "own.py"]) == 0
    out, err = capsys.readouterr()
    assert out
    assert "error" not in err


def test_a_file_that_fails_is_named_with_its_line(folder, capsys):
    (folder.parent / "other.py").write_text("\nraise RuntimeError('no luck')\n")
    assert main([*ASKED[0], "--code", "own.py", "--code", "other.py"]) == 2
    assert capsys.readouterr() == ("", "attnlab: error: other.py:2: RuntimeError: no luck\n")


def test_changed_code_is_reported(folder, capsys):
    load_code("own.py")
    load(folder)
    assert capsys.readouterr().err == ""
    Path("own.py").write_text(OWN.replace("return 2", "return 3"))
    load_code("own.py")
    load(folder)
    assert capsys.readouterr().err == (
        f"attnlab: {folder}: the code of MECHANISMS.mine differs from the code that the run was trained with\n"
    )


def test_parity_bench_and_list_know_user_mechanisms(folder, monkeypatch, capsys):
    """Checks that `parity`, `bench` and `list` also run the file."""
    assert main(["parity", "mine"]) == 2
    assert "mechanism='mine' is not known" in capsys.readouterr().err
    asked = {}
    monkeypatch.setattr("attnlab.bench.parity.parity", lambda chosen, *rest: asked.update(chosen) or [])
    assert main(["parity", "mine", "--code", "own.py"]) == 0
    assert asked == {"mine": attnlab.MECHANISMS["mine"]}
    del attnlab.MECHANISMS["mine"]

    def measured(plan, *rest):
        assert list(plan.mechanisms) == ["mine"]
        raise KeyboardInterrupt

    monkeypatch.setattr("attnlab.analysis.measure.machine", lambda: None)
    monkeypatch.setattr("attnlab.bench.measuring.bench", measured)
    assert main(["bench", "mine", "--code", "own.py"]) == 130
    capsys.readouterr()
    assert main(["list", "mechanisms", "--code", "own.py"]) == 0
    (line,) = [line for line in capsys.readouterr().out.splitlines() if line.split()[0] == "mine"]
    assert line.split(maxsplit=1)[1] == "A mechanism of your own."
