"""Tests of a small study from its plan to its page."""

import json
import signal
import sys
from contextlib import contextmanager
from dataclasses import replace

import jax
import numpy as np
import pytest

from attnlab.data.io.files import DataError
from attnlab.decoding import Beam
from attnlab.lab import load, run
from attnlab.lab.execution.log_lines import Plain
from attnlab.lab.planning.costs import describe
from attnlab.lab.results.outcome import outcomes
from attnlab.lab.runs.run_folder import RunFolder
from attnlab.lab.runs.study_file import read_study_file
from attnlab.lab.study.overrides import apply
from attnlab.lab.study.study import Study, change
from attnlab.lab.study.variation import Variation
from attnlab.lab.trained.sample import sample
from attnlab.lab.trained.translate import translate
from attnlab.models import MODELS
from attnlab.storage.json_file import FolderError
from attnlab.system.signals import UNBEGUN, Interrupted
from attnlab.tasks.synthetic.reverse import Reverse
from attnlab.training.progress import Silent
from attnlab.training.trainer import Trainer
from tests.lab.small_study import EIGHT, STUDY
from tests.small import EXPERIMENT, TINY
from tests.training.toy import Bigram


def test_a_study_writes_its_folders_and_its_page(finished):
    out, results = finished
    assert results.code == 0
    assert results.report == out / "small" / "report.html"
    assert results.report.is_file()
    for order, variant in enumerate(("softmax", "linear")):
        names = {path.name for path in (out / "small" / variant).iterdir()}
        assert names >= {
            "experiment.json", "environment.json", "metrics.jsonl", "checkpoints", "result.json", "maps.json",
            "vocabulary.json",
        }  # fmt: skip
        result = RunFolder(out / "small" / variant).read("result")
        metric = result["metrics"]["exact_match"]
        assert set(metric) == {"mean", "low", "high", "values"}
        assert len(metric["values"]) == 2
        assert 0 <= metric["mean"] <= 1
        # The parameters, their gradients and both moments of the optimizer take four bytes per number.
        assert result["memory_bytes"] > 4 * 4 * 2 * result["parameters"]
        told = RunFolder(out / "small" / variant).read("experiment")
        assert outcomes(out / "small")[order].experiment["question"] == "Which?"
        assert read_study_file(out / "small")[variant]["order"] == order
        # How sources are bucketed, marked and refused does not change the evaluation.
        written = told["experiment"]["task"]["fields"]
        taught = ("buckets", "source_marks", "empty")
        assert told["comparable_part"]["fields"] == {
            name: value for name, value in written.items() if name not in taught
        }
        examples = RunFolder(out / "small" / variant).read("maps")["examples"]
        lengths = [len(one["source"]) for one in examples]
        assert 2 <= len(examples) <= 3
        assert lengths[0] == max(lengths) > lengths[-1] == min(lengths)
        for one in examples:
            shape = np.shape(one["layers"])
            assert shape[2:] == (len(one["target"]), len(one["source"]))
        for line in (out / "small" / variant / "metrics.jsonl").read_text().splitlines():
            assert {"step", "seed", "loss"} <= set(json.loads(line))


def test_a_finished_run_is_not_repeated(finished):
    out, _ = finished
    before = (out / "small" / "softmax" / "result.json").stat().st_mtime_ns
    run(STUDY, out)
    assert (out / "small" / "softmax" / "result.json").stat().st_mtime_ns == before


def test_another_configuration_is_refused_with_its_differences_and_no_file_changes(finished):
    out, _ = finished
    before = {path: path.stat().st_mtime_ns for path in out.rglob("*")}
    other = replace(STUDY, base=change(EXPERIMENT, **{"model.width": 16}))
    with pytest.raises(
        ValueError, match=r"another configuration \(model.width was 8, now 16\); .* set another --out DIR to keep both$"
    ):
        run(other, out)
    assert {path: path.stat().st_mtime_ns for path in out.rglob("*")} == before


def test_an_interruption_before_the_first_variant_says_so(tmp_path, monkeypatch):
    def stopped(*args, **how):
        raise Interrupted(signal.SIGINT, "with nothing left to save")

    monkeypatch.setattr("attnlab.lab.launch.matched", stopped)
    with pytest.raises(Interrupted, match=f"{UNBEGUN}$"):
        run(STUDY, tmp_path)


def test_seconds_are_measured_anew_where_all_variants_are_fresh(tmp_path, monkeypatch):
    seen = []

    def watch(home, note, fresh):
        seen.append(fresh)
        raise RuntimeError

    monkeypatch.setattr("attnlab.lab.launch.Stopwatch", watch)
    for overrides in ([], ["model.mechanism=linear"]):
        with pytest.raises(RuntimeError):
            run(apply(replace(STUDY, budget="seconds"), overrides), tmp_path, fresh=True)
    assert seen == [True, False]


def test_a_trained_run_loads_and_decodes(finished):
    out, _ = finished
    model, problem = load(out / "small" / "linear")
    answer = problem.answer(model, problem.encode_prompt("1 2 3"))
    found = sample(out / "small" / "linear", "1 2 3")
    assert found["answer"] == problem.format_answer(answer)
    assert found["source"] == ["1", "2", "3", "∎"]
    assert np.shape(found["map"]) == (len(found["target"]), 4)


def test_the_test_uses_the_decoder_and_the_mean_model(tmp_path, monkeypatch):
    monkeypatch.setitem(MODELS, "bigram", Bigram())
    experiment = change(EXPERIMENT, **{"model": Bigram(), "train.average": 2, "train.seeds": 1})
    experiment = replace(experiment, decoder=Beam(size=2))
    run(Study(experiment, name="beam"), tmp_path)
    result = RunFolder(tmp_path / "beam" / "base").read("result")
    model, problem = load(tmp_path / "beam" / "base")
    answers = [problem.answer(model, batch, Beam(size=2)) for batch in problem.eval_batches("test")]
    assert {name: metric["values"] for name, metric in result["metrics"].items()} == {
        name: [pytest.approx(value)] for name, value in problem.score("test", answers).items()
    }
    # The last model is tested as well.
    model, _ = load(tmp_path / "beam" / "base", "last")
    answers = [problem.answer(model, batch, Beam(size=2)) for batch in problem.eval_batches("test")]
    assert (result["tested_model"], result["tested_steps"]) == ("mean", [11, 12])
    assert {name: metric["values"] for name, metric in result["last_metrics"].items()} == {
        name: [pytest.approx(value)] for name, value in problem.score("test", answers).items()
    }


def test_a_run_with_patience_is_tested_by_the_best_model_of_each_seed(tmp_path, monkeypatch):
    sizes = {"train.steps": 12, "train.evaluate_every": 4, "train.save_every": 4}
    experiment = change(EXPERIMENT, **TINY | sizes | {"train.patience": 3})
    scores, evaluate = iter([[0.2, 0.3], [0.5, 0.1], [0.4, 0.0]]), Trainer.evaluate

    def given(trainer, model, part, *rest):
        if part == "test":
            return evaluate(trainer, model, part, *rest)
        return [{"loss": 1 - score} for score in next(scores)]

    monkeypatch.setattr(Trainer, "evaluate", given)
    run(Study(replace(experiment, train=replace(experiment.train, keep_last=3)), name="patient"), tmp_path)
    folder = tmp_path / "patient" / "base"
    result = RunFolder(folder).read("result")
    assert (result["tested_model"], result["tested_steps"]) == ("best", [8, 4])
    # `load` returns the best model of the first seed, that of step 8, and not the last one.
    best, eighth, last = (load(folder, step)[0] for step in (None, 8, "last"))
    equal = lambda one, other: jax.tree.all(jax.tree.map(np.array_equal, one, other))
    assert equal(best, eighth)
    assert not equal(best, last)
    assert result["last_metrics"].keys() == result["metrics"].keys()


def test_describe_counts_costs_without_training():
    softmax, linear = describe(STUDY)
    assert softmax["parameters"] == linear["parameters"] > 0
    assert softmax["flops"] > 0
    assert softmax["variant"] == "softmax"


def test_the_best_rate_on_validation_is_chosen_and_divergence_is_reported(tmp_path):
    rates = {"train.learning_rate": (3e-3, 1e38), "train.clip": 0.0}
    study = Study(change(EXPERIMENT, **EIGHT | rates), name="rates")
    results = run(study, tmp_path)
    result = RunFolder(tmp_path / "rates" / "base").read("result")
    assert results.code == 5
    assert result["learning_rate"] == 3e-3
    assert {lane["learning_rate"] for lane in result["diverged"]} == {1e38}


def test_sample_and_translate_do_not_need_the_data(finished, monkeypatch):
    out, _ = finished
    folder = out / "small" / "linear"
    answer = sample(folder, "1 2 3")["answer"]
    told = [answer.text for answer in translate(folder, ["1 2 3", "3"])]

    def gone(task):
        raise DataError("the data are gone")

    monkeypatch.setattr(Reverse, "load", gone)
    assert sample(folder, "1 2 3")["answer"] == told[0] == answer
    assert [answer.text for answer in translate(folder, ["1 2 3", "3"])] == told
    with pytest.raises(DataError, match=r"never seen in training: \"7\""):
        sample(folder, "1 7")
    # `load` needs the data.
    with pytest.raises(DataError, match="the data are gone"):
        load(folder)


def test_only_the_status_line_is_shown_while_variants_are_checked(tmp_path, untrained):
    told = []

    class Heard(Silent):
        @contextmanager
        def waiting(self, what):
            told.append(what)
            yield
            told.append("checked")

        def note(self, text):
            told.append(text)

    run(replace(STUDY, match="parameters"), out=tmp_path, progress=Heard())
    assert told[:2] == ["checking every variant", "checked"]
    assert told[2].startswith("matched to softmax, the base of the study: parameters")


def test_the_selection_of_variants_is_reported_before_training(tmp_path, untrained, capsys):
    run(apply(STUDY, ["model.mechanism=linear"]), tmp_path, progress=Plain(sys.stderr))
    first, *_ = capsys.readouterr().err.splitlines()
    assert first == "model.mechanism=linear selects 1 of 2 variants: linear"


def test_after_a_failure_the_other_variants_train_and_the_page_is_written(tmp_path, monkeypatch, capsys):
    from attnlab.lab.execution import variant as execution

    def failing(plan, *rest):
        if plan.variant == "b":
            raise FolderError("this one cannot")
        return real(plan, *rest)

    real = execution.run_variant
    monkeypatch.setattr(execution, "run_variant", failing)
    three = Variation({"a": {}, "b": {"train.warmup": 3}, "c": {"train.warmup": 4}})
    study = Study(change(EXPERIMENT, **EIGHT), three, name="turns")
    with pytest.raises(FolderError, match="this one cannot"):
        run(study, tmp_path, progress=Plain())
    assert [(tmp_path / "turns" / name / "result.json").exists() for name in "abc"] == [True, False, True]
    said = capsys.readouterr().err
    print(said)
    assert "variant b failed: this one cannot" in said
    assert f"report of the finished variants: {tmp_path / 'turns' / 'report.html'}" in said
    assert "2 of 3 variants finished" in (tmp_path / "turns" / "report.html").read_text()
    monkeypatch.setattr(execution, "run_variant", real)
    assert run(study, tmp_path).code == 0
