"""A study from its plan to its page, as small as it can be."""

import json
from dataclasses import replace

import numpy as np
import pytest

from attnlab.lab import load, run
from attnlab.lab.describe import describe
from attnlab.lab.folder import RunFolder
from attnlab.lab.look import sample
from attnlab.lab.study import Study, change, over
from attnlab.mechanisms import Linear, Softmax
from attnlab.training.checkpoints import CheckpointError
from tests.small import EXPERIMENT

STUDY = Study(EXPERIMENT, over("model.mechanism", softmax=Softmax(), linear=Linear()), name="small", question="Which?")


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    out = tmp_path_factory.mktemp("runs")
    return out, run(STUDY, out, command="attnlab run small.py")


def test_a_study_leaves_its_folders_and_its_page(finished):
    out, results = finished
    assert results.code == 0
    assert results.report == out / "small" / "report.html"
    assert results.report.is_file()
    for variant in ("softmax", "linear"):
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
        for line in (out / "small" / variant / "metrics.jsonl").read_text().splitlines():
            assert {"step", "seed", "loss"} <= set(json.loads(line))


def test_what_is_done_is_not_done_again(finished):
    out, _ = finished
    before = (out / "small" / "softmax" / "result.json").stat().st_mtime_ns
    run(STUDY, out)
    assert (out / "small" / "softmax" / "result.json").stat().st_mtime_ns == before


def test_another_configuration_is_refused_naming_what_differs_and_nothing_is_touched(finished):
    out, _ = finished
    before = {path: path.stat().st_mtime_ns for path in out.rglob("*")}
    other = replace(STUDY, base=change(EXPERIMENT, **{"model.width": 16}))
    with pytest.raises(ValueError, match=r"another configuration: model.width was 8, now 16; --fresh"):
        run(other, out)
    assert {path: path.stat().st_mtime_ns for path in out.rglob("*")} == before


def test_a_glimpse_gives_way_to_the_real_run(tmp_path):
    study = replace(STUDY, vary=over("model.mechanism", softmax=Softmax()), quick={"train.steps": 4})
    run(study, tmp_path, quick=True)
    assert RunFolder(tmp_path / "small" / "softmax").read("result")["steps"] == 4
    run(study, tmp_path)
    assert RunFolder(tmp_path / "small" / "softmax").read("result")["steps"] == 12
    with pytest.raises(ValueError, match=r"train.steps was 12, now 4"):
        run(study, tmp_path, quick=True)


def test_a_trained_run_loads_and_answers(finished):
    out, _ = finished
    model, problem = load(out / "small" / "linear")
    answer = problem.answer(model, problem.ask("1 2 3"))
    found = sample(out / "small" / "linear", "1 2 3")
    assert found["answer"] == problem.tell(answer)
    assert found["source"] == ["1", "2", "3"]
    assert np.shape(found["map"]) == (len(found["target"]), 3)


def test_an_altered_checkpoint_is_refused(finished, tmp_path):
    import shutil

    out, _ = finished
    shutil.copytree(out / "small" / "softmax", tmp_path / "softmax")
    for path in (tmp_path / "softmax" / "checkpoints").rglob("*"):
        if path.is_file() and path.name != "manifest.json" and path.stat().st_size:
            path.write_bytes(path.read_bytes()[:-1] + b"\0\0")
    with pytest.raises(CheckpointError, match="was altered"):
        load(tmp_path / "softmax")


def test_what_a_study_would_cost_is_known_without_running_it():
    softmax, linear = describe(STUDY)
    assert softmax["parameters"] == linear["parameters"] > 0
    assert softmax["flops"] > 0
    assert softmax["variant"] == "softmax"


def test_of_several_rates_the_best_on_validation_is_taken_and_divergence_is_told(tmp_path):
    study = Study(change(EXPERIMENT, **{"train.learning_rate": (3e-3, 1e38), "train.clip": 0.0}), name="rates")
    results = run(study, tmp_path)
    result = RunFolder(tmp_path / "rates" / "base").read("result")
    assert results.code == 5
    assert result["learning_rate"] == 3e-3
    assert {lane["learning_rate"] for lane in result["diverged"]} == {1e38}
