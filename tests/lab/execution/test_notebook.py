"""The display of a run in a notebook: one line that is updated, and notes."""

import sys
from types import ModuleType, SimpleNamespace

import pytest

from attnlab.lab.execution.notebook import Notebook
from attnlab.lab.execution.progress import default_progress
from attnlab.training.progress import Silent
from tests.lab.execution.test_progress import Clock, train


@pytest.fixture
def shown(monkeypatch):
    """Returns the lines that IPython received, each with "new" or "changed"."""
    lines = []

    def display(data, raw, display_id):
        assert (raw, display_id) == (True, True)
        lines.append(("new", *data.items()))
        return SimpleNamespace(update=lambda data, raw: lines.append(("changed", *data.items())))

    module = ModuleType("IPython.display")
    vars(module)["display"] = display
    monkeypatch.setitem(sys.modules, "IPython.display", module)
    return lines


def texts(shown):
    return [text for _, (kind, text) in shown if kind == "text/plain"]


def test_one_line_is_updated_in_place(shown, capsys):
    clock = Clock()
    train(Notebook(clock), clock)
    assert [how for how, _ in shown].count("new") == 1
    lines = texts(shown)
    assert len(lines) == len(shown)
    assert lines[:5] == [
        "softmax, variant 1 of 2: step 0 of 40, creating the models …",
        "softmax, variant 1 of 2: step 0 of 40, compiling the training step (batch 64, 24 tokens) …",
        "softmax, variant 1 of 2: step 0 of 40",
        "softmax, variant 1 of 2: step 8 of 40, loss 0.125",
        "softmax, variant 1 of 2: step 16 of 40, loss 0.0625, 1 steps/s, 24 s left",
    ]
    assert "linear, variant 2 of 2: step 8 of 40, reading the checkpoint of step 8 …" in lines
    assert lines[-2] == "linear, variant 2 of 2: step 40 of 40, loss 0.025, exact match 80.0%, evaluating …"
    assert lines[-1] == "linear, variant 2 of 2: step 40 of 40, loss 0.025, exact match 80.0%, done in 32 s"
    assert capsys.readouterr() == ("all lanes finite\n", "")


def test_the_line_is_updated_at_most_twice_a_second(shown):
    clock = Clock()
    notebook = Notebook(clock)
    notebook.variant("softmax", 0, 1, 1000)
    for step in range(1, 1001):
        clock.now += 0.01
        notebook.advanced(step, 1.0)
    assert 15 <= len(shown) <= 25
    assert "step 1,000 of 1,000" in texts(shown)[-1]


def test_control_characters_and_markup_are_escaped(shown, capsys):
    notebook = Notebook()
    notebook.variant("a\x1b[2J\n<b>", 0, 1, 3)
    notebook.note("b\x1b[2J")
    assert texts(shown) == ["a␛[2J␊<b>, variant 1 of 1: step 0 of 3, creating the models …"]
    assert "b␛[2J" in capsys.readouterr().out


def test_the_first_variant_reuses_the_line_of_the_preparation(shown):
    notebook = Notebook()
    with pytest.raises(ValueError, match="refused"), notebook.waiting("checking"):
        raise ValueError("refused")
    notebook.close()
    notebook.variant("softmax", 0, 1, 3)
    assert [how for how, _ in shown] == ["new", "changed", "changed"]
    assert texts(shown) == ["checking …", "", "softmax, variant 1 of 1: step 0 of 3, creating the models …"]


def test_a_run_without_training_shows_no_line(shown):
    Notebook().close()
    assert shown == []


@pytest.mark.parametrize(
    ("shell", "kind"), [(None, Silent), (SimpleNamespace(), Silent), (SimpleNamespace(kernel=object()), Notebook)]
)
def test_the_default_is_a_notebook_line_in_a_kernel(monkeypatch, shell, kind):
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: shell))
    assert isinstance(default_progress(), kind)


def test_the_default_is_silent_without_ipython(monkeypatch):
    monkeypatch.delitem(sys.modules, "IPython", raising=False)
    assert isinstance(default_progress(), Silent)
    assert "IPython" not in sys.modules


def test_star_import_of_the_lab():
    brought: dict = {}
    exec("from attnlab.lab import *", brought)
    assert {"run", "Study", "over", "load", "show"} <= brought.keys()
