import os
import subprocess
import sys
from types import SimpleNamespace

import pytest

import attnlab
from attnlab.cli.main import main
from attnlab.cli.verbs import VERBS
from tests.cli.experiment import ROOT


def test_help_loads_nothing_heavy(here):
    heavy = "{'jax', 'numpy', 'rich', 'tyro'}"
    loaded = f"import sys; from attnlab.cli.main import main; main(['--help']); print(set(sys.modules) & {heavy})"
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    done = subprocess.run([sys.executable, "-c", loaded], capture_output=True, text=True, cwd=here, env=environment)
    assert done.stdout.endswith("set()\n")
    for verb in VERBS:
        assert f"  {verb} " in done.stdout


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_explains_itself(capsys, verb):
    assert main([verb, "--help"]) == 0
    shown = capsys.readouterr()
    assert shown.out.startswith(f"usage: attnlab {verb} ")
    assert shown.err == ""


def test_no_command_shows_the_usage(capsys):
    assert main([]) == 2
    shown = capsys.readouterr()
    assert shown.out.startswith("attnlab: a laboratory for attention\n\nusage: attnlab ")
    assert shown.err == ""


def test_version(capsys):
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"attnlab {attnlab.__version__}\n"


class Coded(Exception):
    """An error with its own exit code."""

    exit_code = 3


def raising(error):
    def act(options):
        raise error

    return act


@pytest.mark.parametrize(
    ("error", "leaves", "line"),
    [
        (Coded("line one\nline two"), 3, "attnlab: error: line one line two"),
        (
            OSError(28, "No space left on device", "runs/x"),
            4,
            "attnlab: error: runs/x: No space left on device",
        ),
        (
            RuntimeError("boom\nmore"),
            1,
            "attnlab: error: unexpected RuntimeError: boom more; --debug shows the traceback",
        ),
        (ValueError("jax said"), 1, "attnlab: error: unexpected ValueError: jax said; --debug shows the traceback"),
        (KeyError("x"), 1, "attnlab: error: unexpected KeyError: 'x'; --debug shows the traceback"),
        (Coded(), 3, "attnlab: error: Coded"),
        (KeyboardInterrupt(), 130, "attnlab: interrupted"),
    ],
)
def test_exit_codes(monkeypatch, capsys, error, leaves, line):
    monkeypatch.setitem(VERBS, "list", SimpleNamespace(run=lambda *_: raising(error)(None)))
    assert main(["list"]) == leaves
    assert capsys.readouterr().err == line + "\n"


def test_an_error_that_a_worker_printed_is_not_repeated(monkeypatch, capsys):
    error = Coded("the reason")
    error.variant = "b"
    monkeypatch.setitem(VERBS, "list", SimpleNamespace(run=lambda *_: raising(error)(None)))
    assert main(["list"]) == 3
    assert capsys.readouterr().err == "attnlab: error: variant b failed; see above\n"


@pytest.mark.parametrize("switch", [["--debug"], []])
def test_debug_shows_the_traceback(monkeypatch, capsys, switch):
    if not switch:
        monkeypatch.setenv("ATTNLAB_DEBUG", "1")
    assert main(["rnu", *switch]) == 2
    shown = capsys.readouterr().err
    assert "Traceback" in shown
    assert shown.splitlines()[-1].startswith("attnlab: error: unknown command 'rnu'")
