"""Tests of experiment files that import modules from their own folder."""

import importlib
import sys

import pytest

import attnlab
from attnlab.cli.main import main
from attnlab.lab import load
from attnlab.lab.study import serialize
from attnlab.lab.study.load import load_code, load_study
from attnlab.lab.study.sibling_imports import _FINDER
from attnlab.lab.study.user_code import codes
from tests.lab.study.test_load import WORKS

HELPER = """
from dataclasses import dataclass
import attnlab
from attnlab.mechanisms import Linear, Mechanism, Wrapper
from steps_of_mine import STEPS

@dataclass(frozen=True)
class Mine(Wrapper):
    '''One of your own.'''
    mechanism: Mechanism = Linear()
    def twice(self):
        return 2

attnlab.MECHANISMS["mine"] = Mine()
"""
STUDY = """
from dataclasses import replace
from attnlab.lab.study import Experiment, Study
from attnlab.lab.study.variation import over
from attnlab.mechanisms import Softmax
from attnlab.models import Transformer
from attnlab.tasks import Reverse
from attnlab.training.config import Train
import helper_of_mine

study = Study(
    Experiment(
        Reverse(train_examples=32, valid_examples=4, test_examples=4, symbols=5, train_longest=4, longest=4, buckets=1),
        Transformer(width=8, heads=2, layers=1),
        Train(steps=helper_of_mine.STEPS, batch_size=4, warmup=1, seeds=1, evaluate_every=2, save_every=2),
    ),
    over("model.mechanism", softmax=Softmax(), mine=helper_of_mine.Mine()),
)
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setattr(attnlab, "MECHANISMS", dict(attnlab.MECHANISMS))
    monkeypatch.setattr(attnlab.mechanisms, "MECHANISMS", attnlab.MECHANISMS)
    (tmp_path / "study.py").write_text(STUDY)
    (tmp_path / "helper_of_mine.py").write_text(HELPER)
    (tmp_path / "steps_of_mine.py").write_text("STEPS = 2\n")
    yield tmp_path
    _FINDER.files.clear()
    for name in ("helper_of_mine", "steps_of_mine"):
        sys.modules.pop(name, None)


def digest(folder):
    study = load_study(folder / "study.py")
    return codes(serialize.write(study.variants()["mine"]))["MECHANISMS.mine"]


def test_a_sibling_module_is_imported_without_leaving_files(folder):
    study = load_study(folder / "study.py")
    assert study.base.train.steps == 2
    assert sorted(path.name for path in folder.iterdir()) == ["helper_of_mine.py", "steps_of_mine.py", "study.py"]
    assert str(folder) not in sys.path


def test_it_is_reloaded_and_its_code_is_part_of_the_fingerprint(folder):
    before = digest(folder)
    assert digest(folder) == before
    (folder / "helper_of_mine.py").write_text(HELPER.replace("return 2", "return 3"))
    assert digest(folder) != before
    (folder / "steps_of_mine.py").write_text("STEPS = 3\n")
    assert load_study(folder / "study.py").base.train.steps == 3


def test_two_folders_have_separate_modules(folder, tmp_path):
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "steps_of_mine.py").write_text("STEPS = 5\n")
    (tmp_path / "other" / "helper_of_mine.py").write_text(HELPER)
    (tmp_path / "other" / "study.py").write_text(STUDY)
    steps = [load_study(each / "study.py").base.train.steps for each in (tmp_path, tmp_path / "other", tmp_path)]
    assert steps == [2, 5, 2]


def test_standard_modules_and_attnlab_are_not_shadowed(folder):
    (folder / "queue.py").write_text("raise RuntimeError('not this one')")
    (folder / "attnlab.py").write_text("raise RuntimeError('not this one')")
    (folder / "study.py").write_text("import queue\nimport attnlab\n" + STUDY)
    load_study(folder / "study.py")
    # A module that the file does not import is not shadowed either.
    (folder / "rich.py").write_text("raise RuntimeError('not this one')")
    assert importlib.import_module("rich").__file__ != str(folder / "rich.py")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("\n1 / 0\n", r"helper_of_mine.py:2: ZeroDivisionError: division by zero"),
        ("x = (\n", r"helper_of_mine.py:1: SyntaxError: '\(' was never closed.*"),
        ("\n\nraise ValueError('heads=3')\n", r"helper_of_mine.py:3: heads=3"),
    ],
)
def test_errors_in_it_name_its_file_and_line(folder, text, words):
    (folder / "helper_of_mine.py").write_text(text)
    with pytest.raises(ValueError, match=f"{folder}/{words}$"):
        load_study(folder / "study.py")


def test_a_sibling_package(folder):
    (folder / "parts_of_mine").mkdir()
    (folder / "parts_of_mine" / "__init__.py").write_text("")
    (folder / "parts_of_mine" / "inner.py").write_text("FEW = 1\n")
    text = "from parts_of_mine.inner import FEW\n" + WORKS.replace("few=1", "few=FEW")
    (folder / "packed.py").write_text(text)
    assert load_study(folder / "packed.py").variants()["few"].train.steps == 1


def test_workers_and_trained_runs_find_it(folder, monkeypatch, capsys):
    monkeypatch.chdir(folder)
    assert main(["run", "study.py", "--workers", "2"]) == 0
    assert main(["run", "study.py"]) == 0
    assert "mine: already finished" in capsys.readouterr().err
    assert main(["report", "runs"]) == 0
    del attnlab.MECHANISMS["mine"]
    assert main(["sample", "runs/study/mine", "--input", "1 2", "--code", "study.py"]) == 0
    capsys.readouterr()
    (folder / "helper_of_mine.py").write_text(HELPER.replace("return 2", "return 3"))
    load_code("study.py")
    load("runs/study/mine")
    assert "differs from the code that the run was trained with" in capsys.readouterr().err
