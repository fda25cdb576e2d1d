"""Checks early stopping of lanes."""

from dataclasses import replace

import jax.numpy as jnp
import numpy as np
import pytest

from attnlab.console.metric import Metric
from attnlab.lab import load_study
from attnlab.lab.study import serialize
from attnlab.training.checkpoints import Checkpoints
from attnlab.training.config import Train
from attnlab.training.loop import Interrupted, fit
from attnlab.training.state import State
from attnlab.training.stopping import early_stop
from attnlab.training.trainer import Trainer
from tests.training.test_loop import Listener, leaves, plain


def lanes(count, step=10):
    full = lambda value, dtype: jnp.full((count,), value, dtype)
    return State(
        None, None, None, full(0.1, "float32"), full(step, "int32"), full(-1, "int32"),
        full(-1, "int32"), full(-1, "int32"), full(-jnp.inf, "float32"), full(0, "int32"),
    )  # fmt: skip


def judged(train, *evaluations, higher=False, pretraining_steps=0):
    state = lanes(len(evaluations[0]))
    for n, values in enumerate(evaluations, start=1):
        state = early_stop(
            train, replace(state, step=jnp.full_like(state.step, 10 * n)), np.array(values), higher, pretraining_steps
        )
    return state


def test_a_lane_stops_at_the_target_and_others_continue():
    state = judged(Train(target=0.1), [0.5, 0.2], [0.1, 0.2], [0.5, 0.2])
    np.testing.assert_array_equal(state.stopped, [20, -1])
    np.testing.assert_array_equal(judged(Train(target=0.9), [0.95, 0.5], higher=True).stopped, [10, -1])


def test_a_lane_stops_after_patience_evaluations_without_improvement():
    # Neither an equal value nor NaN is an improvement. An improvement restarts the count.
    state = judged(Train(patience=2), [3.0, 3.0], [3.0, 2.0], [np.nan, 2.0], [1.0, 1.0])
    np.testing.assert_array_equal(state.stopped, [30, -1])
    np.testing.assert_allclose(state.best, [-3.0, -1.0])


def test_evaluations_during_pretraining_do_not_count():
    # Until step 20, the target does not apply, constant chance values do not stop a lane, and no value counts as best.
    values = [9.0], [9.0], [3.0], [4.0], [4.0]
    np.testing.assert_array_equal(judged(Train(patience=2), *values, higher=True).stopped, [30])
    np.testing.assert_array_equal(judged(Train(patience=2), *values, higher=True, pretraining_steps=20).stopped, [-1])
    np.testing.assert_array_equal(judged(Train(target=9.0), *values, higher=True, pretraining_steps=20).stopped, [-1])
    np.testing.assert_array_equal(judged(Train(target=9.0), *values, higher=True, pretraining_steps=19).stopped, [20])


def test_a_run_is_not_stopped_during_pretraining(tmp_path, monkeypatch):
    monkeypatch.setattr(Falling, "pretraining_steps", 40)
    # The lane reaches its target at step 10 already.
    np.testing.assert_array_equal(train(tmp_path, [], replace(CONFIG, learning_rate=(0.1,))).state.stopped, [45])


def test_a_lane_that_diverged_did_not_stop_early():
    state = replace(lanes(2), diverged_step=jnp.array([5, -1], "int32"))
    np.testing.assert_array_equal(early_stop(Train(target=1.0), state, np.array([0.0, 0.0]), False).stopped, [-1, 10])


class Falling:
    """A problem whose validation metric is the number of the model, which Adam lowers."""

    metric, pretraining_steps = Metric("height"), 0
    first_steps = (0,)

    def batch(self, seed, step, size):
        return {"x": np.ones((size, 1 + seed), np.float32)}

    def loss(self, model, batch, key):
        return jnp.mean(model["w"] * batch["x"]), {}

    def answer(self, model, batch):
        return {"w": model["w"]}

    def eval_batches(self, part, limit=None):
        return [{"x": np.ones((1, 1), np.float32)}]

    def score(self, part, answers, limit=None):
        return {"height": float(answers[0]["w"])}

    def declared(self, key):
        return Metric(key)


def train(folder, rows, config, progress=None, problem=None):
    trainer = Trainer(lambda key: {"w": jnp.ones(())}, problem or Falling(), config)

    def cut(step):
        rows[:] = [row for row in rows if row["step"] <= step]

    return fit(trainer, Checkpoints(folder), rows.extend, cut, progress or Listener())


CONFIG = Train(
    steps=100, batch_size=2, learning_rate=(0.1, 0.01), schedule="constant", warmup=0, clip=0.0, seeds=1,
    evaluate_every=5, save_every=20, target=0.25,
)  # fmt: skip


def test_a_stopped_lane_keeps_its_model_and_the_run_ends_with_the_last_lane(tmp_path):
    rows = []
    fitted = train(tmp_path, rows, CONFIG)
    # Adam lowers each number by its rate per step: 1 − 0.1·10 = 0 and 1 − 0.01·75 = 0.25.
    assert fitted.step in (75, 80)
    np.testing.assert_array_equal(fitted.state.stopped, [10, fitted.step])
    np.testing.assert_allclose(fitted.state.model["w"], [0.0, 1 - 0.01 * fitted.step], atol=1e-3)
    assert max(row["step"] for row in rows) == fitted.step
    assert Checkpoints(tmp_path).steps()[-1] == fitted.step


def test_without_patience_or_target_no_lane_stops(tmp_path):
    fitted = train(tmp_path, [], replace(CONFIG, target=None))
    assert fitted.step == 100
    np.testing.assert_array_equal(fitted.state.stopped, [-1, -1])


def test_interrupted_and_resumed_stops_at_the_same_step(tmp_path):
    rows, other = [], []
    whole = train(tmp_path / "whole", rows, CONFIG)
    for stop in (12, 60):
        with pytest.raises(Interrupted):
            train(tmp_path / "parts", other, CONFIG, Listener(stop=stop))
    again = train(tmp_path / "parts", other, CONFIG)
    assert plain(other) == plain(rows)
    for a, b in zip(leaves(whole.state), leaves(again.state), strict=True):
        np.testing.assert_array_equal(a, b)


def test_a_run_whose_lanes_all_stopped_ends_at_once(tmp_path):
    first, again = (train(tmp_path, [], CONFIG) for _ in range(2))
    assert (first.seconds_per_step, first.memory_bytes) == (again.seconds_per_step, again.memory_bytes)


class Valley(Falling):
    """The same problem with a metric that is best if the number is one half."""

    def score(self, part, answers, limit=None):
        return {"height": abs(float(answers[0]["w"]) - 0.5)}


# Adam lowers each number from 1 by its rate per step. The lanes reach one half after 5 and 50 steps, and stop two
# evaluations later.
PATIENT = replace(CONFIG, target=None, patience=2)


def test_a_stopped_lane_restores_its_best_model(tmp_path):
    fitted = train(tmp_path, [], PATIENT, problem=Valley())
    assert fitted.step == 60
    np.testing.assert_array_equal(fitted.state.stopped, [15, 60])
    np.testing.assert_array_equal(fitted.state.best_step, [5, 50])
    np.testing.assert_allclose(fitted.model["w"], [0.5, 0.5], atol=1e-3)
    np.testing.assert_allclose(fitted.state.model["w"], [1 - 0.1 * 15, 1 - 0.01 * 60], atol=1e-3)
    # Training ends before the second lane stops. Its best model is returned nevertheless.
    fitted = train(tmp_path / "short", [], replace(PATIENT, steps=54), problem=Valley())
    np.testing.assert_allclose(fitted.model["w"], [0.5, 0.5], atol=1e-3)


def test_of_equal_scores_the_latest_model_is_kept(tmp_path, monkeypatch):
    monkeypatch.setattr(Valley, "score", lambda *given: {"height": 1.0})
    fitted = train(tmp_path, [], PATIENT, problem=Valley())
    np.testing.assert_array_equal(fitted.state.stopped, [15, 15])
    np.testing.assert_array_equal(fitted.state.best_step, [15, 15])
    np.testing.assert_allclose(fitted.model["w"], [1 - 0.1 * 15, 1 - 0.01 * 15], atol=1e-3)


def test_without_restore_best_the_last_model_is_kept(tmp_path):
    fitted = train(tmp_path, [], replace(PATIENT, restore_best=False), problem=Valley())
    assert fitted.state.best_model is None
    np.testing.assert_allclose(fitted.model["w"], [1 - 0.1 * 15, 1 - 0.01 * 60], atol=1e-3)


def test_a_lane_whose_metric_is_nan_keeps_its_last_model(tmp_path, monkeypatch):
    monkeypatch.setattr(Valley, "score", lambda *given: {"height": np.nan})
    fitted = train(tmp_path, [], PATIENT, problem=Valley())
    np.testing.assert_array_equal(fitted.state.best_step, [-1, -1])
    np.testing.assert_array_equal(fitted.model["w"], fitted.state.model["w"])


@pytest.mark.parametrize("stops", [(3, 8, 12), (50, 54)])
def test_the_best_model_survives_an_interruption_exactly(tmp_path, stops):
    whole = train(tmp_path / "whole", [], PATIENT, problem=Valley())
    for stop in stops:
        with pytest.raises(Interrupted):
            train(tmp_path / "parts", [], PATIENT, Listener(stop=stop), Valley())
    again = train(tmp_path / "parts", [], PATIENT, problem=Valley())
    for a, b in zip(leaves((whole.state, whole.model)), leaves((again.state, again.model)), strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize(("patience", "back"), [(3, False), (0, True)])
def test_older_runs_keep_their_last_model(patience, back):
    written = serialize.write(Train(patience=patience))
    del written["restore_best"]
    assert serialize.read(written, Train).restore_best is back


def test_the_capacity_of_linear_attention_is_measured_by_the_published_rule():
    for name in ("capacity", "overwriting"):
        experiments = load_study(f"experiments/{name}.py").variants().values()
        assert {(each.train.patience, each.train.restore_best) for each in experiments} == {(11, False)}


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"patience": -1}, "train.patience=-1 must be 0 or more"),
        ({"restore_best": "no"}, "train.restore_best='no' must be true or false"),
        ({"patience": 1.5}, "train.patience=1.5 must be a whole number"),
        ({"target": float("nan")}, "train.target=nan must be a finite number, or none"),
        ({"target": "low"}, "train.target='low' must be a number"),
    ],
)
def test_an_invalid_value_names_the_field(fields, words):
    with pytest.raises(ValueError, match=words):
        Train(**fields)
