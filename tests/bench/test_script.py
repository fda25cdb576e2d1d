import ast
import json
import re
import runpy
from dataclasses import asdict
from pathlib import Path

import pytest

from attnlab.analysis.growth import Growth, growth
from attnlab.analysis.measure import Program, Quartiles
from attnlab.analysis.roofline import Machine
from attnlab.bench import script
from attnlab.bench.script import claim, claim_growth, finish, options, place, share

SCRIPTS = sorted((Path(__file__).parents[2] / "benchmarks").glob("*.py"))


def test_a_claim_is_checked_by_its_worst_value():
    kept = claim("x", [Quartiles(1.4, 1.0, 2.0), 1.9], least=1.3)
    assert str(kept) == "kept   x: minimum 1.40 (1.00–2.00), expected at least 1.3"
    assert str(claim("x", [0.9, 1.2], most=1.1)).startswith("MISSED x: maximum 1.20")
    assert str(claim("x", [], least=1)) == "–      x: nothing measured"
    for values in ([float("nan")], [2.0, float("nan")], [float("nan"), 2.0]):
        assert claim("x", values, least=1).verdict == claim("x", values, most=3).verdict == "MISSED"


def test_the_spread_and_the_share_of_the_roofline_are_those_of_the_worst_value():
    values = [Quartiles(2.0, 1.9, 2.1), Quartiles(1.2, 1.1, 1.3), 1.5]
    worst = claim("x", values, least=1.3, shares=[0.5, 0.25, None])
    assert str(worst) == "MISSED x: minimum 1.20 (1.10–1.30), ours at 25% of the roofline, expected at least 1.3"
    assert claim("x", values, most=1.3, shares=[0.5, 0.25, None]).roofline == "50%"
    assert claim("x", values[1:2], most=1.3, shares=[None]).roofline == ""
    with pytest.raises(ValueError, match="2 shares for 3 values"):
        claim("x", values, least=1.3, shares=[0.5, 0.25])


def test_the_share_of_the_roofline_is_of_compute_or_of_memory(monkeypatch):
    monkeypatch.setattr(script, "this_machine", lambda: Machine("x", flops=100.0, bandwidth=10.0))
    bound = lambda moved: share(Program(run=lambda: None, flops=500, moved=moved), [10.0, 20.0, 30.0])
    assert bound(1) == 500 / 20 / 100
    assert bound(1000) == 1000 / 20 / 10  # bound by memory: half an operation per byte
    assert bound(None) is None


def test_growth_is_checked_by_its_interval():
    lengths = (512, 1024, 2048, 4096)
    kept = claim_growth("x", Growth(1.05, 1.01, 1.1, lengths), most=1.3)
    assert str(kept) == "kept   x: T^1.05 (1.01–1.10), expected an upper end of at most 1.3"
    # The verdict follows from the interval. The central value alone would decide the unclear claims too.
    for fit, said in (
        ((1.05, 0.75, 1.35), "unclear x: T^1.05 (0.75–1.35)"),
        ((1.35, 1.25, 1.45), "unclear x: T^1.35"),
        ((1.45, 1.35, 1.55), "MISSED x: T^1.45 (1.35–1.55)"),
    ):
        assert str(claim_growth("x", Growth(*fit, lengths), most=1.3)).startswith(said)
    for fit, said in (((0.9, 0.8, 1.0), "kept  "), ((0.3, 0.2, 0.4), "unclear"), ((0.1, 0.0, 0.2), "MISSED")):
        told = str(claim_growth("x", Growth(*fit, lengths), least=0.3))
        assert told.startswith(f"{said} x: ")
        assert told.endswith("expected a lower end of at least 0.3")
    few = Growth(1.05, None, None, lengths[:2])
    assert str(claim_growth("x", few, most=1.3)).startswith("–      x: T^1.05, too few")
    assert str(claim_growth("x", None, most=1.3)) == "–      x: nothing measured"


def test_growth_on_long_texts_is_fitted_over_every_length_and_twice_the_longest(monkeypatch, capsys):
    """Steps take 1 ms + T² ns. A fit over only the two longest of three lengths would overestimate their growth."""
    long = runpy.run_path(str(SCRIPTS[0].parent / "long.py"), run_name="long")
    seconds = lambda T: 1e-3 + 1e-9 * T**2
    monkeypatch.setitem(
        long["main"].__globals__,
        "compiled",
        lambda T, names: {name: Program(run=lambda: T, memory=1) for name in names},
    )
    monkeypatch.setitem(
        long["main"].__globals__,
        "timed",
        lambda programs, repeat: {name: [seconds(each.run())] * repeat for name, each in programs.items()},
    )
    monkeypatch.setattr("sys.argv", ["long.py", "--mechanisms", "linear", "--lengths", "512", "1024", "2048"])
    long["main"]()
    fit = growth({T: [seconds(T)] * 9 for T in (512, 1024, 2048, 4096)}, largest=4)
    assert str(claim_growth("growth of linear with T", fit, most=1.3)) in capsys.readouterr().out.splitlines()


def test_a_script_measures_all_or_the_requested_mechanisms(monkeypatch, capsys):
    given = lambda *words: monkeypatch.setattr("sys.argv", ["bench.py", *words])
    given()
    assert options("", [1], 3, ["linear", "window"]).mechanisms == ["linear", "window"]
    assert not hasattr(options("", [1], 3), "mechanisms")
    given("--mechanisms", "window", "--lengths", "5", "6")
    chosen = options("", [1], 3, ["linear", "window"])
    assert (chosen.mechanisms, chosen.lengths, chosen.repeat) == (["window"], [5, 6], 3)
    given("--mechanisms", "wind")
    with pytest.raises(SystemExit):
        options("", [1], 3, ["linear", "window"])
    assert "invalid choice: 'wind'" in capsys.readouterr().err


def test_results_are_written_next_to_the_script(tmp_path, capsys):
    assert place("benchmarks/softmax.py", "json") == Path("benchmarks/results/softmax.json")
    claims = [claim("speed", [1.5], least=1.3)]
    finish(str(tmp_path / "one.py"), False, claims, machine={"cores": 2}, seconds=[0.5])
    assert not (tmp_path / "results").exists()
    finish(str(tmp_path / "one.py"), True, claims, machine={"cores": 2}, seconds=[0.5])
    assert capsys.readouterr().out == 2 * "kept   speed: minimum 1.50, expected at least 1.3\n"
    assert json.loads((tmp_path / "results" / "one.json").read_text()) == {
        "machine": {"cores": 2},
        "claims": [asdict(claims[0])],
        "seconds": [0.5],
    }


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.stem)
def test_every_benchmark_says_its_claim_command_and_what_to_expect(path, monkeypatch):
    monkeypatch.syspath_prepend(path.parent)  # as Python does when it runs a script
    tree = ast.parse(path.read_text())
    document = ast.get_docstring(tree)
    for word in ("Claim:", "Command:", "Expected:"):
        assert word in document
    assert f"python benchmarks/{path.name}" in document
    assert "TODO" not in document
    # Importing a benchmark measures nothing.
    assert ast.unparse(tree.body[-1].test) == "__name__ == '__main__'"
    compile(tree, path.name, "exec")
    exec(compile(path.read_text(), str(path), "exec"), {"__name__": path.stem, "__doc__": document})


def test_the_claims_of_all_records_are_one_table(tmp_path):
    table = runpy.run_path(str(SCRIPTS[0].parent / "shared" / "table.py"))["table"]
    with pytest.raises(ValueError, match="has no results"):
        table(tmp_path / "results", tmp_path)
    machine = {"processor": "Xeon", "cores": 2, "flops": 1.4e11, "jax": "0.10.2"}
    claims = [claim("speed", [1.5], least=1.3), claim("growth", [])]
    finish(str(tmp_path / "one.py"), True, claims, machine=machine, torch="2.13.0")
    (tmp_path / "one.py").write_text('"""Speed.\n\nClaim: fast.\n\nWhat bounds it: the\nmemory.\n"""\n')
    lines = table(tmp_path / "results", tmp_path).splitlines()
    assert lines[2:4] == [
        "| one | speed | minimum 1.50 |  |  | at least 1.3 | kept |",
        "| one | growth | nothing |  |  |  | – |",
    ]
    assert lines[-1] == "| one | Xeon, 2 cores, 140 GFLOP/s | jax 0.10.2, torch 2.13.0 |"
    # A record of an older version has neither quartiles nor a share.
    old = {"what": "speed", "measured": "minimum 1.50", "expected": "at least 1.3", "verdict": "kept"}
    (tmp_path / "results" / "old.json").write_text(json.dumps({"machine": machine, "claims": [old]}))
    assert "| old | speed | minimum 1.50 |  |  | at least 1.3 | kept |" in table(tmp_path / "results", tmp_path)
    for record in ({"machine": machine}, {"machine": machine, "claims": ["kept speed"]}, {"claims": []}):
        (tmp_path / "results" / "old.json").write_text(json.dumps(record))
        with pytest.raises(
            ValueError, match=r"old.json is of an older version; run benchmarks/old.py again with --save"
        ):
            table(tmp_path / "results", tmp_path)
    (tmp_path / "results" / "old.json").unlink()
    # The table says what bounds a benchmark if the benchmark misses a claim.
    finish(str(tmp_path / "one.py"), True, [claim("speed", [1.2], least=1.3)], machine=machine)
    assert table(tmp_path / "results", tmp_path).endswith("\n\n**one**: What bounds it: the\nmemory.")


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.stem)
def test_a_script_that_misses_its_claim_says_what_bounds_it(path):
    expected = ast.get_docstring(ast.parse(path.read_text())).partition("Expected:")[2]
    if re.search(r"miss|kept in part|kept, except|not reached", expected):
        assert re.search(r"\n\nWhat bounds it[:,]", expected)
