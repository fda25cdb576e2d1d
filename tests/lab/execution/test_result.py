"""Tests of `result.json`: the chosen learning rate, diverged lanes, and intervals that account for both."""

import json
import math
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from attnlab.console.metric import Metric
from attnlab.lab.execution.result import result
from attnlab.lab.runs.run_folder import RunFolder
from attnlab.lab.statistics import interval, summary
from attnlab.training.config import Train

COSTS = {"parameters": 1, "flops": 2.0, "state_bytes": 3}


def found(valid, test, alive=None, higher=True, rates=(1e-3, 1e-2), metric="exact_match", **more):
    """Returns the result of lanes with these primary metrics [seeds, rates]. `more` contains other metrics."""
    test = np.asarray(test, float)
    alive = np.ones(test.shape, bool) if alive is None else np.asarray(alive)
    train = Train(seeds=tuple(range(7, 7 + len(test))), learning_rate=rates)
    state = SimpleNamespace(alive=alive.ravel(), stopped=np.full(alive.size, -1))
    fitted = SimpleNamespace(
        state=state, diverged_step=np.where(alive.ravel(), -1, 5), first_nonfinite=[None if well else "w" for well in
        alive.ravel()], step=9, seconds=1.0, compile_seconds=0.5, seconds_per_step=0.1, memory_bytes=64,
    )  # fmt: skip
    primary = Metric(metric, higher=higher)
    problem = SimpleNamespace(
        metric=primary, metrics={metric: primary}, declared=lambda key: replace(primary, name=key), fingerprint="f"
    )
    named = {metric: test, **{name: np.asarray(values, float) for name, values in more.items()}}
    lanes = [{name: float(values.ravel()[n]) for name, values in named.items()} for n in range(test.size)]
    scores = None if valid is None else [{metric: float(value)} for value in np.asarray(valid, float).ravel()]
    return result(SimpleNamespace(train=train), problem, fitted, scores, lanes, 100, COSTS)


def test_the_rate_is_chosen_on_validation_and_reported_on_test():
    said = found([[0.8, 0.9], [0.7, 0.95], [0.9, 0.9]], [[1, 2], [3, 4], [5, 7]])
    assert (said["learning_rate"], said["learning_rates"], said["seeds"]) == (1e-2, [1e-3, 1e-2], [7, 8, 9])
    assert said["metrics"]["exact_match"]["values"] == [2, 4, 7]
    assert said["by_rate"] == [
        {"learning_rate": 1e-3, "values": [0.8, 0.7, 0.9]},
        {"learning_rate": 1e-2, "values": [0.9, 0.95, 0.9]},
    ]


def test_the_interval_accounts_for_the_choice_of_the_rate():
    said = found([[0.8, 0.9], [0.9, 0.95], [0.9, 0.9]], [[1, 2], [3, 4], [5, 7]])
    assert said["contenders"] == [1e-3, 1e-2]
    metric = said["metrics"]["exact_match"]
    assert (metric["low"], metric["high"]) == interval([2, 4, 7], tried=2)
    assert metric["low"] < interval([2, 4, 7])[0]


def test_a_much_worse_rate_does_not_widen_the_interval():
    said = found([[0.2, 0.90], [0.21, 0.91], [0.2, 0.90]], [[1, 2], [3, 4], [5, 7]])
    assert said["contenders"] == [1e-2]
    assert said["metrics"]["exact_match"] == summary([2, 4, 7])


def test_the_lowest_metric_is_chosen_if_lower_is_better():
    said = found([[0.3, 0.9], [0.8, 0.8], [0.7, 0.8]], [[1, 2], [3, 4], [5, 7]], higher=False)
    assert said["learning_rate"] == 1e-3
    metric = said["metrics"]["exact_match"]
    assert (metric["low"], metric["high"]) == interval([1, 3, 5], tried=2, higher=False)


def test_parts_of_the_primary_metric_are_widened_and_other_metrics_are_not():
    same = [[1, 2], [3, 4], [5, 7]]
    said = found([[0.8, 0.9], [0.9, 0.95], [0.9, 0.9]], same, **{"exact_match.de": same, "loss": same})["metrics"]
    assert said["exact_match.de"] == said["exact_match"]
    assert said["loss"] == summary([2, 4, 7])


def test_one_rate_needs_no_validation():
    said = found(None, [[1], [2]], rates=1e-3)
    assert (said["learning_rate"], said["contenders"]) == (1e-3, [1e-3])
    assert said["metrics"]["exact_match"] == summary([1, 2])


def test_lanes_that_diverged_count_against_their_rate_and_are_never_averaged():
    # The last values of a diverged lane may still be finite and good.
    alive = [[True, True], [True, False], [True, True]]
    said = found([[0.5, 0.9], [0.5, 0.99], [0.5, 0.9]], [[1, 2], [3, 4], [5, 7]], alive)
    assert (said["learning_rate"], said["contenders"]) == (1e-3, [1e-3])
    assert said["diverged"] == [{"seed": 8, "learning_rate": 1e-2, "step": 6, "first_nonfinite": "w"}]
    assert said["by_rate"][1]["values"] == [0.9, None, 0.9]
    both = [[True, False], [True, False], [False, False]]
    said = found([[0.5, 0.9], [0.5, 0.99], [0.5, 0.9]], [[1, 2], [3, 4], [5, 7]], both)
    assert (said["learning_rate"], said["seeds"]) == (1e-3, [7, 8])
    assert said["metrics"]["exact_match"]["values"] == [1, 3]


def test_no_metric_if_all_lanes_diverged():
    said = found([[0.5, 0.9]], [[1, 2]], [[False, False]])
    assert (said["metrics"], said["seeds"], said["learning_rate"]) == ({}, [], 1e-3)


@pytest.mark.parametrize("bad", [math.inf, math.nan])
def test_a_metric_that_is_not_finite_has_its_values_and_no_mean(bad, tmp_path):
    said = found([[0.9, 0.8]] * 2, [[1, 2], [3, 4]], perplexity=[[9, 9], [bad, 9]])
    RunFolder(tmp_path).write("result", said)
    read = json.loads((tmp_path / "result.json").read_text())["metrics"]
    assert read["perplexity"] == {"mean": None, "low": None, "high": None, "values": [9, None]}
    assert read["exact_match"]["values"] == [1, 3]


def test_every_metric_of_the_result_is_declared():
    same = [[1, 2], [3, 4], [5, 7]]
    said = found([[0.8, 0.9], [0.9, 0.95], [0.9, 0.9]], same, **{"exact_match.de": same, "loss": same})
    assert said["declared"].keys() == said["metrics"].keys()
    assert said["declared"]["exact_match"] == {"unit": "", "low": None, "high": None, "higher": True}
