"""Checks the command `attnlab bench`."""

import json
from dataclasses import replace

import pytest

import attnlab
from attnlab.analysis import measure
from attnlab.analysis.roofline import Machine
from attnlab.bench import peers
from attnlab.cli.main import main
from attnlab.mechanisms import Softmax
from tests.analysis.examples import Sum
from tests.bench.stand_ins import peer


@pytest.fixture
def small(monkeypatch):
    monkeypatch.setattr(attnlab.mechanisms, "MECHANISMS", {"softmax": Softmax(), "sum": Sum()})
    monkeypatch.setattr(measure, "machine", lambda: Machine("here", 1e11, 1e10))
    monkeypatch.setattr(peers, "PEERS", {"stand-in": peer()})


SIZES = ["--lengths", "16,8", "--heads", "2", "--width", "4", "--repeat", "2"]


def test_the_bench_command(small, capfd, tmp_path):
    files = ["--json", str(tmp_path / "b.json"), "--plot", str(tmp_path / "b.png")]
    assert main(["bench", "softmax", *SIZES, "--causal", "--peers", *files]) == 0
    told = capfd.readouterr()
    assert "here: 100 GFLOP/s float32 product, 10 GB/s, ridge 10 FLOP/B" in told.out
    assert "time relative to ours" in told.out
    assert "softmax, causal, forward: T=8 " in told.err
    record = json.loads((tmp_path / "b.json").read_text())
    assert [(each["T"], each["which"]) for each in record["measured"]] == [
        *((8, "forward"), (16, "forward")),
        *((8, "forward+backward"), (16, "forward+backward")),
    ]
    assert (tmp_path / "b.png").stat().st_size > 10_000


def test_missing_peers_are_named_with_the_reason(small, capfd, monkeypatch):
    elsewhere = replace(peer(), computes=lambda platform: False)
    monkeypatch.setattr(peers, "PEERS", {"a": peer("no-such-package"), "b": elsewhere, "c": peer("jax")})
    assert main(["bench", "softmax", *SIZES, "--causal", "--peers"]) == 0
    told = capfd.readouterr()
    assert (
        "attnlab: skipped, not installed: no-such-package; pip install .[peers] in a checkout installs them" in told.err
    )
    assert "attnlab: skipped, not supported on this device: numpy" in told.err
    assert "time relative to ours" in told.out


def test_all_mechanisms_under_both_masks_and_the_record_alone_on_standard_output(small, capfd):
    assert main(["bench", *SIZES, "--json", "-"]) == 0
    told = capfd.readouterr()
    assert {each["name"] for each in json.loads(told.out)["growth"]} == {"softmax", "sum"}
    assert "as estimated by the compiler" in told.err


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["sofmax"], "mechanism='sofmax' is not known; nearest: 'softmax'"),
        (["--lengths", "8,x"], "--lengths 'x' must be a whole number between 1 and 16777216"),
        (["--width", "9" * 5000], "--width '99999"),
        (["--repeat", "0"], "--repeat '0' must be a whole number between 1 and 16777216"),
        (["--causal", "--full"], "argument --full: not allowed with argument --causal"),
        (["--plot", "."], "--plot . is a folder, expected a file"),
        (["--plot", "nowhere/a.png"], "--plot nowhere/a.png: the folder nowhere does not exist"),
        (["--peer"], "attnlab bench does not accept '--peer'; nearest: '--peers'"),
    ],
)
def test_malformed_lines_give_one_line(capfd, arguments, words):
    assert main(["bench", *arguments]) == 2
    told = capfd.readouterr()
    assert told.out == ""
    assert told.err.startswith(f"attnlab: error: {words}"), told.err
    assert told.err.count("\n") == 1
