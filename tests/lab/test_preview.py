"""Previews of a study."""

import sys
from dataclasses import replace

import pytest

from attnlab.lab import run
from attnlab.lab.execution.log_lines import Plain
from attnlab.lab.launch import preview
from attnlab.lab.results.outcome import outcomes
from attnlab.lab.runs.run_folder import RunFolder
from attnlab.lab.study.study import Study, change
from attnlab.lab.study.variation import Variation, over
from attnlab.mechanisms import Softmax
from tests.lab.small_study import EIGHT, QUICKLY, STUDY
from tests.small import EXPERIMENT


def test_a_real_run_replaces_a_preview(tmp_path):
    study = replace(QUICKLY, vary=over("model.mechanism", softmax=Softmax()), quick={"train.steps": 4})
    run(study, tmp_path, quick=True)
    assert RunFolder(tmp_path / "small" / "softmax").read("result")["steps"] == 4
    run(study, tmp_path)
    assert RunFolder(tmp_path / "small" / "softmax").read("result")["steps"] == 8
    with pytest.raises(ValueError, match=r"train.steps was 8, now 4"):
        run(study, tmp_path, quick=True)


def test_a_preview_does_not_continue_a_full_run_with_the_same_fields(tmp_path):
    study = replace(QUICKLY, vary=over("model.mechanism", softmax=Softmax()), quick={"train.steps": 8})
    assert study.variants(quick=True) == study.variants()
    run(study, tmp_path)
    folder = RunFolder(tmp_path / "small" / "softmax")
    folder.file("result").unlink()  # as if the run had been stopped before its test
    with pytest.raises(ValueError, match="contains a full run; continue it without --quick, or set another --out DIR"):
        run(study, tmp_path, quick=True)
    assert not folder.file("result").exists()
    assert run(study, tmp_path).code == 0


def test_a_preview_is_announced_as_not_meaningful(tmp_path, untrained, capsys):
    run(STUDY, tmp_path, quick=True, progress=Plain(sys.stderr))
    first, *_ = capsys.readouterr().err.splitlines()
    assert first == "this is a preview of a few steps; its numbers are not meaningful"
    five = Variation({name: {"train.warmup": n} for n, name in enumerate("abcde", 1)})
    study = Study(change(EXPERIMENT, **EIGHT), five, name="five", quick={"train.steps": 4})
    run(study, tmp_path, quick=True, progress=Plain(sys.stderr))
    first, *_ = capsys.readouterr().err.splitlines()
    assert first == "this is a preview of a few steps and of 4 of the 5 variants; its numbers are not meaningful"
    expecting = replace(study, name="expecting", published={"c": 0.5, "e": 0.5}, bands={"e": (0.4, None)})
    run(expecting, tmp_path, quick=True, progress=Plain(sys.stderr))
    assert capsys.readouterr().err.splitlines()[0] == first


def test_a_preview_reduces_the_seeds():
    study = Study(change(EXPERIMENT, **{"train.seeds": 5}), name="small")
    assert study.preview["train.seeds"] == 2
    assert replace(study, base=change(EXPERIMENT, **{"train.seeds": (7, 8, 9)})).preview["train.seeds"] == (7, 8)


def test_a_preview_does_not_average_checkpoints():
    study = Study(
        change(EXPERIMENT, **{"train.steps": 1000, "train.save_every": 500, "train.average": 2}), name="small"
    )
    assert study.variants(quick=True)["base"].train.average == 0
    assert study.variants()["base"].train.average == 2


def test_a_preview_of_many_variants_takes_evenly_spaced_ones():
    rates = {f"rate-{n:02}": 1e-3 * n for n in range(1, 41)}
    study = Study(EXPERIMENT, over("train.learning_rate", **rates), name="small")
    assert list(preview(study).variants()) == ["rate-01", "rate-11", "rate-21", "rate-31"]
    few = replace(study, vary=over("train.learning_rate", **dict(list(rates.items())[:4])))
    assert list(preview(few).variants()) == list(few.variants())


def test_a_preview_keeps_real_runs_of_other_variants(tmp_path):
    five = Variation({name: {"train.warmup": n} for n, name in enumerate("abcde", 1)})
    study = Study(change(EXPERIMENT, **EIGHT), five, name="previewed", quick={"train.steps": 4, "train.warmup": 2})
    assert list(preview(study).variants()) == ["a", "b", "c", "d"]
    run(study.keeping(Variation({"e": {"train.warmup": 5}})), tmp_path)
    run(study, tmp_path, quick=True)
    found = {outcome.name: outcome.result is not None for outcome in outcomes(tmp_path / "previewed")}
    assert found == dict.fromkeys("abcde", True)
