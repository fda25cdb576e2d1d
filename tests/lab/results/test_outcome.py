import shutil
from dataclasses import replace

import pytest

from attnlab.console.metric import Metric
from attnlab.lab.results.declared import entries
from attnlab.lab.results.outcome import by_metric, is_planned, outcomes
from attnlab.lab.runs.run_folder import FolderError, RunFolder
from tests.lab.made import outcome
from tests.lab.metrics import declared
from tests.lab.synthetic import retell, rewrite, write_run, write_study


def change(folder, **fields):
    run = RunFolder(folder)
    run.write("result", {**(run.read("result") or {}), **fields})


def test_the_best_is_first_and_unfinished_variants_are_last(tmp_path):
    variants = {"a": {"finished": False}, "b": {"mean": 0.6}, "c": {"mean": 0.9}}
    write_study(tmp_path, variants, steps=40)
    assert [outcome.name for outcome in outcomes(tmp_path)] == ["c", "b", "a"]
    # Colours follow the order in the study, so they do not change with the ranking.
    assert [outcome.order for outcome in outcomes(tmp_path)] == [2, 1, 0]
    for name in ("b", "c"):
        change(tmp_path / name, declared=entries([replace(declared("exact_match"), higher=False)]))
    assert [outcome.name for outcome in outcomes(tmp_path)] == ["b", "c", "a"]


def test_metrics_are_ranked_separately_in_the_order_of_the_study(tmp_path):
    means = {"some": 0.5, "low": 0.6, "less": 0.1, "high": 0.9}
    write_study(tmp_path, {name: {"mean": mean} for name, mean in means.items()}, steps=40)
    for name in ("some", "less"):
        retell(RunFolder(tmp_path / name), "bits_per_character", 3.0)
    assert [outcome.name for outcome in outcomes(tmp_path)] == ["less", "some", "high", "low"]
    # If higher is better for both metrics, their variants are still ranked separately.
    for name in ("some", "less"):
        change(tmp_path / name, declared=entries([Metric("bits_per_character", higher=True)]))
    assert [outcome.name for outcome in outcomes(tmp_path)] == ["some", "less", "high", "low"]


def test_unfinished_variants_join_the_others_if_there_is_one_metric():
    a, b, c = outcome("a", [0.9]), outcome("b", [2.0], "nats", False), replace(outcome("c", []), result=None)
    grouped = lambda *found: {metric.name: some for metric, some in by_metric(found).items()}
    assert grouped(a, c) == {"exact_match": [a, c]}
    assert grouped(a, b, c) == {"exact_match": [a], "nats": [b], "": [c]}
    assert grouped(c) == {"": [c]}
    assert grouped() == {}


def test_the_order_is_that_of_the_study_else_of_names(tmp_path):
    for name, order in (("z", 0), ("y", 1), ("b", None), ("a", None)):
        write_run(tmp_path / name, name, steps=40, order=order)
    found = {outcome.name: outcome for outcome in outcomes(tmp_path)}
    assert {name: outcome.order for name, outcome in found.items()} == {"z": 0, "y": 1, "a": 2, "b": 3}
    assert {name for name, outcome in found.items() if is_planned(outcome)} == {"y", "z"}


def test_steps_are_the_mean_over_lanes_and_flops_follow_from_them(tmp_path):
    run = write_run(tmp_path / "a", "a", steps=40)
    early = [{"seed": 1, "learning_rate": 0.003, "step": 10}, {"seed": 2, "learning_rate": 0.5, "step": 20}]
    change(run.path, stopped=early, flops=100.0)
    (outcome,) = outcomes(tmp_path)
    assert outcome.trained_steps() == 30
    assert outcome.training_flops() == 3000
    change(run.path, flops=None, stopped=[], contenders=[0.1, 0.2])
    (outcome,) = outcomes(tmp_path)
    assert (outcome.trained_steps(), outcome.training_flops(), outcome.tried_rates()) == (40, None, 2)
    change(run.path, steps=None, contenders="x")
    (outcome,) = outcomes(tmp_path)
    assert (outcome.trained_steps(), outcome.tried_rates()) == (None, 1)


def test_learning_rates_are_read_with_the_lanes_that_diverged(tmp_path):
    write_run(tmp_path / "a", "a", steps=40, rates=(0.003, 0.03))
    first, second = outcomes(tmp_path)[0].rates
    assert [first.learning_rate, second.learning_rate] == [0.003, 0.03]
    assert [(rate.diverged, len(rate.estimate.values)) for rate in (first, second)] == [(0, 3), (1, 2)]
    change(tmp_path / "a", by_rate=[{}])
    assert outcomes(tmp_path)[0].troubles == ("a/result.json: by_rate: every entry must have learning_rate and values",)


def test_other_folders_are_left_alone(tmp_path):
    write_study(tmp_path, steps=40)
    (tmp_path / "notes").mkdir()
    (tmp_path / "report.html").write_text("")
    write_run(tmp_path / ".hidden", "hidden", steps=40)
    assert {outcome.name for outcome in outcomes(tmp_path)} == {"softmax", "linear"}


def test_values_are_paired_with_their_seeds(tmp_path):
    write_run(tmp_path / "a", "a", seeds=(4, 7, 9), diverged=(7,), steps=40)
    (outcome,) = outcomes(tmp_path)
    values = outcome.metrics["exact_match"].values
    assert outcome.by_seed("exact_match") == {4: values[0], 9: values[1]}
    assert [lane["seed"] for lane in outcome.lost_lanes()] == [7]
    # The list of seeds may contain diverged seeds, which have no value.
    change(tmp_path / "a", seeds=[4, 7, 9])
    assert outcomes(tmp_path)[0].by_seed("exact_match") == {4: values[0], 9: values[1]}
    assert outcomes(tmp_path)[0].alive_seeds() == [4, 9]
    change(tmp_path / "a", seeds=[4, 5, 7, 9])
    assert outcomes(tmp_path)[0].by_seed("exact_match") == {}
    # A non-finite value is kept as None and prevents a pairing by seed.
    estimate = {"mean": None, "low": None, "high": None, "values": [0.5, None]}
    change(tmp_path / "a", seeds=[4, 9], metrics={"exact_match": estimate})
    (outcome,) = outcomes(tmp_path)
    assert (outcome.values("exact_match"), outcome.by_seed("exact_match")) == ({4: 0.5, 9: None}, {})


def test_lanes_and_steps_are_read_from_the_configuration(tmp_path):
    run = write_run(tmp_path / "a", "a", finished=False, steps=400)
    (outcome,) = outcomes(tmp_path)
    assert (outcome.lanes(), outcome.last_step(), outcome.planned_steps()) == (3, 100, 400)
    found = run.read("experiment") or {}
    found["experiment"]["train"] = {"seeds": 4, "learning_rate": [0.1, 0.2]}
    rewrite(run, found)
    (outcome,) = outcomes(tmp_path)
    assert (outcome.lanes(), outcome.planned_steps()) == (8, None)


def test_invalid_numbers_are_none(tmp_path):
    write_run(tmp_path / "a", "a", steps=40)
    change(tmp_path / "a", metrics={"exact_match": {"mean": "1", "values": [True, 1e300, None, 0.5]}})
    estimate = outcomes(tmp_path)[0].metrics["exact_match"]
    assert (estimate.mean, estimate.low, estimate.values) == (None, None, (None, None, None, 0.5))
    assert not estimate.sound


def test_problems_name_the_file_relative_to_the_study(tmp_path):
    run = write_run(tmp_path / "a", "a", steps=40)
    change(run.path, seeds=["0"])
    (outcome,) = outcomes(tmp_path)
    assert outcome.result is None
    assert outcome.troubles == ("a/result.json: the field 'seeds' must be a list of integers",)
    # Without experiment.json, it is unknown to which run the other files belong, so they are ignored.
    run.file("experiment").unlink()
    (outcome,) = outcomes(tmp_path)
    assert (outcome.result, outcome.rows) == (None, [])
    assert outcome.troubles == ("a/experiment.json is missing",)


def test_lost_rows_are_reported(tmp_path):
    run = write_run(tmp_path / "a", "a", steps=40)
    run.truncate_metrics(run.metrics()[0]["step"])
    (outcome,) = outcomes(tmp_path)
    (trouble,) = outcome.troubles
    assert trouble.startswith("a/metrics.jsonl: rows are missing: the last row is from step ")


def test_a_folder_without_runs(tmp_path):
    with pytest.raises(FolderError, match="contains no run"):
        outcomes(tmp_path)


def test_a_folder_copied_from_another_variant_is_not_used(tmp_path):
    write_study(tmp_path, {"softmax": {}, "linear": {"mean": 0.5}}, steps=40)
    shutil.rmtree(tmp_path / "linear")
    shutil.copytree(tmp_path / "softmax", tmp_path / "linear")
    softmax, linear = outcomes(tmp_path)
    assert (softmax.name, softmax.troubles) == ("softmax", ())
    assert softmax.result is not None
    whose = "linear/experiment.json belongs to variant 'softmax', so the run is ignored"
    assert (linear.name, linear.result, linear.metrics, linear.troubles) == ("linear", None, {}, (whose,))
