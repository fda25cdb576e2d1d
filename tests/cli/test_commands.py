import signal
from pathlib import Path
from types import SimpleNamespace

import pytest

import attnlab
from attnlab.cli.main import main
from attnlab.system.signals import Interrupted
from attnlab.tasks.base.metrics import EXACT_MATCH
from tests.cli.experiment import FILE, tree


def test_list(here, capsys):
    assert main(["list"]) == 0
    out = capsys.readouterr().out
    for name in ("softmax", "linear", "sinusoidal", "rotary", "transformer", "dates", "reverse", FILE):
        assert f"  {name} " in out
    assert "Softmax against linear, small." in out


def test_list_one_kind(here, capsys):
    assert main(["list", "positions"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "positions"
    assert {line.split()[0] for line in lines[1:]} == set(attnlab.POSITIONS)
    assert main(["list", "units"]) == 0
    assert capsys.readouterr().out.startswith("units (tokenizers; set by task.units)\n  characters ")


def test_lines_of_recurrent_models_name_cell_and_attention(here, capsys):
    assert main(["list", "models"]) == 0
    lines = {line.split()[0]: line for line in capsys.readouterr().out.splitlines()}
    assert "bidirectional GRU) with attention before each step" in lines["bahdanau"]
    assert "bidirectional LSTM) with attention after each step" in lines["luong"]
    assert "(LSTM) without attention" in lines["seq2seq"]


def test_show(here, capsys, fake):
    fake(
        "attnlab.lab.planning.costs",
        describe=lambda study, found: [{"variant": name, "training": 2e12} for name in found.experiments],
    )
    fake(
        "attnlab.lab.planning.ledger",
        Ledger=lambda: SimpleNamespace(
            problem=lambda experiment: SimpleNamespace(pretraining_steps=0, notes=(), metric=EXACT_MATCH)
        ),
    )
    assert main(["show", FILE, "model.width=32", "model.mechanism.normalise=false"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "small: which?"
    words = [line.split() for line in lines]
    assert ["model.width", "32"] in words
    assert ["≠", "model.mechanism", "softmax:", "softmax"] in words
    assert ["≠", "model.mechanism.normalise", "linear:", "false"] in words
    assert lines[-4:-1] == ["variant  FLOPs, all lanes", "softmax           2 TFLOP", "linear            2 TFLOP"]
    assert lines[-1] == "all 2 variants: 4 TFLOP"
    assert tree(here) == ["experiments", FILE]


def test_run(ran, capsys):
    assert main(["run", FILE, "train.steps=5", "--quick", "model.mechanism=linear", "--out", "elsewhere"]) == 0
    (call,) = ran.calls
    assert list(call.study.variants()) == ["linear"]
    assert call.study.base.train.steps == 5
    assert (call.study.name, call.out, call.quick, call.fresh) == ("small", Path("elsewhere"), True, False)
    assert call.command == f"attnlab run {FILE} train.steps=5 model.mechanism=linear --quick"
    told = (
        "table of runs/small",
        "this was a preview (--quick); its numbers are not meaningful",
        "report: runs/small/report.html",
    )
    assert capsys.readouterr().out.splitlines() == [*told]


def test_run_by_default(ran, capsys):
    assert main(["run", FILE, "--device", "cpu"]) == 0
    assert "preview" not in capsys.readouterr().out
    (call,) = ran.calls
    assert (call.out, call.quick, call.fresh) == (Path("runs"), False, False)


def test_the_recorded_command_has_no_absolute_path(ran, here):
    assert main(["run", str(here / FILE), "task.seed=1"]) == 0
    assert ran.calls[0].command == "attnlab run small.py task.seed=1"


def test_diverged_lanes_exit_with_5(ran, capsys):
    ran.run.code = 5
    assert main(["run", FILE]) == 5
    shown = capsys.readouterr()
    assert "table of" in shown.out
    assert shown.err.count("\n") == 1
    assert "diverged" in shown.err


@pytest.mark.parametrize(
    ("where", "fresh"), [("before any variant started", True), ("at step 3, which is saved", False)]
)
def test_the_command_to_continue_keeps_fresh_until_folders_are_cleared(monkeypatch, capsys, where, fresh):
    def stopped(options):
        raise Interrupted(signal.SIGINT, where)

    monkeypatch.setattr("attnlab.cli.commands._ready", stopped)
    assert main(["run", FILE, "--fresh"]) == 130
    go_on = f"attnlab run {FILE} --out runs{' --fresh' * fresh}"
    assert capsys.readouterr().err.endswith(f"stopped by SIGINT {where}; to continue: {go_on}\n")


@pytest.mark.parametrize("folder", ["runs", "runs/small", "runs/small/linear"])
def test_report(runs, capsys, monkeypatch, folder):
    monkeypatch.setattr("attnlab.lab.reporting.pages.report", lambda folder: folder / "report.html")
    assert main(["report", folder]) == 0
    assert capsys.readouterr().out == "report: runs/small/report.html\n"
    monkeypatch.chdir("runs/small/linear")
    assert main(["report", "."]) == 0
    assert capsys.readouterr().out.endswith("runs/small/report.html\n")


def test_data(fake, capsys):
    rows = [("cmudict", "a.txt", "verified", "/d/a.txt"), ("cmudict", "b.txt", "fetched", "/c/b.txt")]
    fake("attnlab.data.io.sources", data=lambda names: iter(rows))
    assert main(["data"]) == 0
    assert [line.split() for line in capsys.readouterr().out.splitlines()] == [
        ["set", "file", "where"],
        *[list(row) for row in rows],
    ]


def test_unavailable_data_exit_with_3(fake, capsys):
    rows = [
        ("x", "a", "x/a is missing: looked\nhere", None),
        ("x", "b", "altered", None),
        ("x", "c", "verified", "/c"),
    ]
    fake("attnlab.data.io.sources", data=lambda names: rows)
    assert main(["data", "x"]) == 3
    shown = capsys.readouterr()
    assert shown.err == "attnlab: error: x/a is missing: looked here (and 1 more)\n"
    assert shown.out.count("unavailable") == 2
