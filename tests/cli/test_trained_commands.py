import io
import json
from pathlib import Path

import pytest

from attnlab.cli.main import main
from tests.cli.experiment import tree


def test_sample(runs, capsys, sampled):
    assert main(["sample", "runs/small/softmax", "--input", "12"]) == 0
    assert capsys.readouterr() == ("21\n\n  12\n2  █\n1 █\n", "attnlab: so it was read\n")
    assert sampled[0].given_options == []
    for step in ("12", "best"):
        assert main(["sample", "runs/small/softmax", "--input", "12", "--step", step]) == 0
    assert sampled.steps == [None, 12, "best"]


def test_sample_with_decoding_options_and_a_page(runs, capsys, sampled):
    options = ["--beam", "4", "--penalty", "0.6", "--best", "2", "--html", "page.html"]
    assert main(["sample", "runs/small/softmax", "--input", "12", *options]) == 0
    assert sampled[0].given_options == ["--beam 4", "--penalty 0.6", "--best 2"]
    assert capsys.readouterr().out.endswith("\nalignment: page.html\n")
    assert "small/softmax" in Path("page.html").read_text()
    draws = ["--temperature", "0.5", "--top-k", "3", "--top-p", "0.9", "--seed", "7"]
    assert main(["sample", "runs/small/softmax", "--input", "12", *draws]) == 0
    assert sampled[1].given_options == ["--temperature 0.5", "--top-k 3", "--top-p 0.9", "--seed 7"]
    assert main(["sample", "runs/small/softmax", "--input", "12", "--length", "9"]) == 0
    assert sampled[2].length == 9


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--beam", "2", "--top-k", "3"], "--beam 2 (beam search) and --top-k 3 (sampling) cannot be combined"),
        (["--beam", "0"], "--beam 0: size=0 must be at least 1"),
        (["--seed", "1", "--beam", "2"], "--seed 1 applies only to sampling and cannot be combined with --beam 2"),
        (["--step", "first"], "argument --step: 'first' must be the number of a step, best or last"),
        (["--html", "page.pdf"], "--html page.pdf must end in .html"),
        (["--html", "no/page.html"], "--html no/page.html: the folder no does not exist"),
    ],
)
def test_invalid_options_of_sample_give_one_line(runs, here, capfd, sampled, options, words):
    before = tree(here)
    assert main(["sample", "runs/small/softmax", "--input", "12", *options]) == 2
    shown = capfd.readouterr()
    assert (shown.out, shown.err.count("\n")) == ("", 1)
    assert shown.err.startswith(f"attnlab: error: {words}")
    assert (sampled, tree(here)) == ([], before)


def test_an_unwritable_page_is_reported(runs, capfd, sampled):
    assert main(["sample", "runs/small/softmax", "--input", "12", "--html", "/proc/page.html"]) == 4
    shown = capfd.readouterr()
    assert (shown.out, shown.err.count("\n")) == ("", 1)
    assert shown.err.startswith("attnlab: error: /proc/page.html: ")


def test_sample_of_a_study_names_its_runs(runs, capsys):
    assert main(["sample", "runs/small", "--input", "12"]) == 4
    assert capsys.readouterr().err == (
        "attnlab: error: runs/small is not a run folder; it contains the runs runs/small/linear, runs/small/softmax\n"
    )


def test_sample_of_a_folder_of_studies_names_their_runs(runs, capsys):
    assert main(["sample", "runs", "--input", "12"]) == 4
    assert capsys.readouterr().err == (
        "attnlab: error: runs is not a run folder; it contains the runs runs/small/linear, runs/small/softmax\n"
    )


def test_at_most_eight_runs_are_named(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    for n in range(1, 11):
        (tmp_path / "study" / f"r{n:02d}").mkdir(parents=True)
        (tmp_path / "study" / f"r{n:02d}" / "experiment.json").touch()
    assert main(["translate", "study"]) == 4
    assert capsys.readouterr().err.endswith("study/r07, study/r08 and 2 more\n")


def test_sample_takes_an_input_that_looks_like_an_option(runs, sampled, capsys):
    assert main(["sample", "runs/small/linear", "--input=-2"]) == 0
    assert capsys.readouterr().out == "21\n\n  -2\n2  █\n1 █\n"
    # The map of the stand-in does not fit this input. The error shows that the input was accepted.
    assert main(["sample", "runs/small/linear", "--input=--help"]) == 2
    assert "6 columns" in capsys.readouterr().err


def test_inspect(runs, capsys, inspected):
    assert main(["inspect", "runs/small/softmax", "--input", "12"]) == 0
    assert inspected == [(Path("runs/small/softmax"), "12", None, None)]
    shown = capsys.readouterr().out
    assert shown.startswith("b\n\nencoder: linear, 2 × 3")
    assert shown.count("\nstep") == shown.count("page:") == shown.count("record:") == 0


def test_inspect_with_another_run_a_page_and_a_record(runs, capsys, inspected):
    options = ["--step", "best", "--other", "runs/small/linear", "--html", "a.html", "--json", "a.json"]
    assert main(["inspect", "runs/small/softmax", "--input", "12", *options]) == 0
    assert inspected == [(Path("runs/small/softmax"), "12", Path("runs/small/linear"), "best")]
    assert capsys.readouterr().out.endswith("\npage: a.html\nrecord: a.json\n")
    assert "small/softmax" in Path("a.html").read_text()
    record = json.loads(Path("a.json").read_text())
    assert record["attentions"]["encoder"]["statistics"][0][1]["rank"] is None


@pytest.mark.parametrize(
    ("options", "leaves", "words"),
    [
        (["--other", "runs/x"], 4, "runs/x is not a run folder"),
        (["--html", "page.pdf"], 2, "--html page.pdf must end in .html"),
        (["--json", "no/a.json"], 2, "--json no/a.json: the folder no does not exist"),
        (["--beam", "2"], 2, "attnlab inspect does not accept '--beam'"),
    ],
)
def test_invalid_options_of_inspect_give_one_line(runs, here, capfd, inspected, options, leaves, words):
    before = tree(here)
    assert main(["inspect", "runs/small/softmax", "--input", "12", *options]) == leaves
    shown = capfd.readouterr()
    assert (shown.out, shown.err.count("\n")) == ("", 1)
    assert shown.err.startswith(f"attnlab: error: {words}")
    assert (inspected, tree(here)) == ([], before)


def test_translate(runs, capsys, fake, monkeypatch):
    calls = []

    def stream(translator, source, sink, tell):
        sink.write(source.read().upper())
        tell("2 lines")
        return 3

    fake("attnlab.lab.trained.translate", Translator=lambda *given: calls.append(given), stream=stream)
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO("ä\nb\n".encode())))
    options = ["--top-k", "2", "--batch", "8", "--longer", "truncate", "--unknown", "skip", "--step", "7"]
    assert main(["translate", "runs/small/linear", *options]) == 3
    shown = capsys.readouterr()
    assert shown.err == "attnlab: 2 lines\n"
    ((run, asked, *rest),) = calls
    assert (run, asked.given_options, rest) == (Path("runs/small/linear"), ["--top-k 2"], [8, "truncate", "skip", 7])


def test_texts_and_fields_are_the_same_in_every_locale(runs, capsys, sampled, inspected):
    """Checks this with "ä" as Python reads it in an ASCII locale: as two surrogates."""
    assert main(["sample", "runs/small/linear", "--input", "b\udcc3\udca4"]) == 0
    assert "ä" in capsys.readouterr().out
    assert main(["inspect", "runs/small/linear", "--input", "\udcc3\udca4"]) == 0
    assert inspected[0][1] == "ä"
    assert main(["run", "experiments/small.py", "\udcc3\udca4=1"]) == 2
    assert "ä" in capsys.readouterr().err


def test_answers_on_standard_output_are_utf8_in_every_locale(runs, fake, monkeypatch):
    asked = []
    score = lambda run, files, *given: asked.append(files) or []
    fake("attnlab.lab.trained.score", score=score, table=lambda found: "input\nχä\n")
    monkeypatch.setattr("sys.stdout", out := io.TextIOWrapper(io.BytesIO(), encoding="latin-1"))
    assert main(["score", "runs/small/linear", "d\udcc3\udca4.tsv", "--out", "-"]) == 0
    assert out.buffer.getvalue() == "input\nχä\n".encode()
    assert asked == [["dä.tsv"]]


def test_translate_without_standard_input(runs, capsys, monkeypatch):
    monkeypatch.setattr("sys.stdin", None)
    assert main(["translate", "runs/small/linear"]) == 2
    assert capsys.readouterr().err.startswith("attnlab: error: standard input is closed")
