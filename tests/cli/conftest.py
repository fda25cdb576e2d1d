"""Fixtures: a folder with one experiment, untrained runs, and commands that neither train nor load anything."""

import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest

from tests.cli.experiment import EXPERIMENT
from tests.lab.looked import FOUND


@pytest.fixture
def here(tmp_path, monkeypatch):
    """Returns a new folder that has one experiment and is the working directory."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("ATTNLAB_DEBUG", raising=False)
    (tmp_path / "experiments").mkdir()
    (tmp_path / "experiments" / "small.py").write_text(EXPERIMENT)
    return tmp_path


@pytest.fixture
def fake(monkeypatch):
    """Returns a function that replaces a module of the laboratory by the given functions."""

    def fake(name, **functions):
        module = ModuleType(name)
        vars(module).update(functions)
        monkeypatch.setitem(sys.modules, name, module)

    return fake


@pytest.fixture
def runs(here):
    """Returns a folder of two untrained runs."""
    for variant in ("softmax", "linear"):
        (here / "runs" / "small" / variant).mkdir(parents=True)
        (here / "runs" / "small" / variant / "experiment.json").write_text("{}")
    return here / "runs"


@pytest.fixture
def ran(here, fake):
    """Replaces `run` by a function that trains nothing. Returns the list of its calls, and the function."""
    calls = []

    def run(study, **options):
        calls.append(SimpleNamespace(study=study, **options))
        return SimpleNamespace(folder=Path("runs/small"), report=Path("runs/small/report.html"), code=run.code)

    run.code = 0
    fake("attnlab.lab.launch", run=run)
    fake("attnlab.lab.results.table", results_table=lambda folder: f"table of {folder}")
    return SimpleNamespace(calls=calls, run=run)


class Calls(list):
    """The recorded requests, and the step of the checkpoint that each one asked for."""

    steps: list


@pytest.fixture
def sampled(monkeypatch):
    """Replaces `sample` by a function that loads nothing. Returns its requests and the steps of their checkpoints."""
    calls = Calls()
    steps = calls.steps = []

    def sample(run, text, asked, step):
        calls.append(asked)
        steps.append(step)
        symbols = {"source": list(text), "target": ["2", "1"]}
        map = [[0, 1], [1, 0]]
        told = {"answer": "21", "answers": [], "decoder": None, "cut": False, "notes": ["so it was read"]}
        return {**told, **symbols, "map": map, "layers": [[map]]}

    monkeypatch.setattr("attnlab.lab.trained.sample.sample", sample)
    return calls


@pytest.fixture
def inspected(monkeypatch):
    """Replaces `inspect` by a function that loads nothing. Returns the arguments of its calls."""
    calls = []
    monkeypatch.setattr("attnlab.lab.trained.inspect.inspect", lambda *asked: calls.append(asked) or FOUND)
    return calls
