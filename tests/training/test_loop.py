"""Checks that the training loop records, saves, and continues after an interruption with bit-identical results."""

import os
import signal
from dataclasses import replace
from types import SimpleNamespace

import jax
import numpy as np
import pytest

from attnlab.console.metric import Metric
from attnlab.training.checkpoints import CheckpointError, Checkpoints, Keep
from attnlab.training.config import Train
from attnlab.training.loop import Interrupted, _judge, _Watch, fit
from attnlab.training.trainer import Trainer
from tests.small import MODEL, TASK, TRAIN
from tests.training.toy import Bigram


class Listener:
    """A progress listener that records its events and stops training at a step by a signal."""

    def __init__(self, stop=None):
        self.stop, self.evaluations, self.saves, self.notes = stop, [], [], []

    def advanced(self, step, loss):
        if self.stop and step >= self.stop:
            os.kill(os.getpid(), signal.SIGTERM)

    def evaluated(self, step, metrics):
        self.evaluations.append(step)

    def saved(self, step):
        self.saves.append(step)

    def note(self, text):
        self.notes.append(text)


def train(folder, rows, progress=None, config=TRAIN, model=Bigram()):
    problem = TASK.load()
    trainer = Trainer(lambda key: model.create(key, problem.shape), problem, config)

    def cut(step):
        rows[:] = [row for row in rows if row["step"] <= step]

    return fit(trainer, Checkpoints(folder), rows.extend, cut, progress or Listener())


def plain(rows):
    return [{name: value for name, value in row.items() if name != "seconds"} for row in rows]


def leaves(state):
    return [
        np.asarray(jax.random.key_data(x) if jax.dtypes.issubdtype(x.dtype, jax.dtypes.prng_key) else x)
        for x in jax.tree.leaves(state)
    ]


@pytest.mark.parametrize("model", [Bigram(), replace(MODEL, dropout=0.1)], ids=["toy", "transformer"])
def test_interrupted_and_resumed_gives_the_same_bits_and_the_same_record(tmp_path, model):
    rows, other = [], []
    whole = train(tmp_path / "whole", rows, model=model)
    with pytest.raises(Interrupted) as stopped:
        train(tmp_path / "parts", other, Listener(stop=6), model=model)
    assert stopped.value.exit_code == 143
    assert Checkpoints(tmp_path / "parts").steps() == [6]
    again = train(tmp_path / "parts", other, model=model)
    assert plain(other) == plain(rows)
    for a, b in zip(leaves(whole.state), leaves(again.state), strict=True):
        np.testing.assert_array_equal(a, b)


def test_every_lane_is_recorded_and_evaluated_and_saved_when_asked(tmp_path):
    rows, listener = [], Listener()
    config = replace(TRAIN, learning_rate=(1e-3, 1e-2), steps=13)
    fitted = train(tmp_path, rows, listener, config)
    assert listener.evaluations == [6, 12, 13]
    assert listener.saves == [6, 12, 13]
    assert {(row["seed"], row["learning_rate"]) for row in rows} == set(config.lanes)
    assert all(np.isfinite(row["loss"]) for row in rows)
    assert [row["step"] for row in rows if "valid.exact_match" in row] == [6] * 4 + [12] * 4 + [13] * 4
    np.testing.assert_array_equal(fitted.state.step, [13] * 4)
    assert fitted.diverged_step.tolist() == [-1] * 4


def test_any_number_of_steps_to_a_dispatch_is_the_same_training(tmp_path):
    one, other = [], []
    a = train(tmp_path / "a", one, config=replace(TRAIN, evaluate_every=12, save_every=12))
    b = train(tmp_path / "b", other, config=replace(TRAIN, evaluate_every=5, save_every=4))
    for x, y in zip(leaves(a.state), leaves(b.state), strict=True):
        np.testing.assert_array_equal(x, y)


def test_the_memory_of_a_program_is_analysed_once(tmp_path, monkeypatch):
    asked = []
    monkeypatch.setattr("attnlab.training.trainer.peak_memory", lambda program: asked.append(id(program)) or 7)
    fitted = train(tmp_path, [], config=replace(TRAIN, steps=40))  # five dispatches
    assert fitted.memory_bytes == 7
    assert len(asked) == len(set(asked)) == 1


def test_a_signal_in_the_last_dispatch_is_raised_after_saving(tmp_path):
    with pytest.raises(Interrupted, match="stopped by SIGTERM at step 12, which is saved"):
        train(tmp_path, [], Listener(stop=TRAIN.steps))
    assert Checkpoints(tmp_path).steps()[-1] == TRAIN.steps
    # The time of a step is known although no step is left.
    done = train(tmp_path, [])
    assert done.seconds_per_step > 0
    assert done.memory_bytes > 0


def test_the_time_of_a_step_excludes_compilation(monkeypatch):
    clock = SimpleNamespace(now=100.0)
    monkeypatch.setattr("attnlab.training.loop.time", SimpleNamespace(perf_counter=lambda: clock.now))
    trainer = SimpleNamespace(compile_seconds=1.0, memory_bytes=7)
    watch = _Watch(trainer, {"seconds": 0.0, "compile_seconds": 0.0})
    with watch.dispatch(4):
        clock.now += 12
        trainer.compile_seconds += 10
    assert watch.elapsed() == {
        "seconds": 12.0, "compile_seconds": 11.0, "seconds_per_step": 0.5, "memory_bytes": 7,
    }  # fmt: skip


def test_a_diverging_learning_rate_stops_alone_and_is_reported(tmp_path):
    rows, listener = [], Listener()
    fitted = train(tmp_path, rows, listener, replace(TRAIN, learning_rate=(1e-3, 1e38), warmup=0, clip=0.0))
    assert (fitted.diverged_step[0::2] == -1).all()
    assert (fitted.diverged_step[1::2] >= 0).all()
    assert all(np.isfinite(row["loss"]) for row in rows if row["learning_rate"] == 1e-3)
    assert fitted.first_nonfinite[0::2] == [None, None]
    assert len(listener.notes) == 2
    for seed, line in enumerate(listener.notes):
        what = fitted.first_nonfinite[2 * seed + 1]
        assert line.startswith(f"seed {seed} at learning rate 1e+38 diverged in step ")
        assert f"{what} is not finite" in line
        assert line.endswith("no checkpoint was saved yet")


def test_training_ends_when_no_lane_is_training(tmp_path):
    rows = []
    config = replace(TRAIN, steps=40, learning_rate=1e38, warmup=0, clip=0.0, evaluate_every=100, save_every=100)
    fitted = train(tmp_path, rows, config=config)
    assert fitted.step < 40
    assert Checkpoints(tmp_path).steps() == [fitted.step]
    assert (train(tmp_path, rows, config=config).diverged_step >= 0).all()


def test_the_best_checkpoint_on_validation_is_kept_and_found(tmp_path):
    config = replace(TRAIN, evaluate_every=2, save_every=2)
    problem = TASK.load()
    trainer = Trainer(lambda key: Bigram().create(key, problem.shape), problem, config)
    scores = iter([0.1, 0.9, 0.3, 0.5, 0.2, 0.4])
    trainer.evaluate = lambda *given: [{problem.metric.name: next(scores)}] * 2
    fit(trainer, Checkpoints(tmp_path, Keep(last=1)), lambda rows: None, lambda step: None, Listener())
    assert Checkpoints(tmp_path).steps() == [4, 12]
    assert Checkpoints(tmp_path).best() == 4


def test_insufficient_disk_space_is_refused_before_the_first_step(tmp_path, monkeypatch):
    monkeypatch.setattr("shutil.disk_usage", lambda path: SimpleNamespace(free=10_000))
    with pytest.raises(
        CheckpointError, match=r"2 checkpoints of this run need 0\.\d MB, but its disk has only 0\.0 MB free"
    ):
        train(tmp_path, [])
    # The best checkpoint may differ from the last two, and a fourth one is written before one of them is deleted.
    with pytest.raises(CheckpointError, match=r"4 checkpoints of this run need"):
        train(tmp_path, [], config=replace(TRAIN, save_every=2))
    assert list(tmp_path.iterdir()) == []


def test_the_selection_score_is_that_of_the_best_learning_rate():
    config = Train(steps=8, seeds=2, learning_rate=(1e-3, 1.0))
    scores = [{"loss": {1e-3: 0.5, 1.0: 9.0}[rate] + 0.1 * seed} for seed, rate in config.lanes]
    trainer = SimpleNamespace(train=config, problem=SimpleNamespace(metric=Metric("loss")))
    selection_score = lambda *alive: _judge(trainer, SimpleNamespace(alive=np.array(alive)), scores)[1]
    assert selection_score(True, True, True, True) == pytest.approx(-0.55)
    lost = [rate != 1e-3 or seed == 1 for seed, rate in config.lanes]
    assert selection_score(*lost) == pytest.approx(-0.6)
    assert selection_score(False, False, False, False) is None
    # A learning rate with a score of NaN is passed over, whichever rate it is.
    for rate, best in ((1e-3, -9.05), (1.0, -0.55)):
        kept = scores[:]
        scores[:] = [
            {"loss": np.nan} if at == rate else score for score, (_, at) in zip(kept, config.lanes, strict=True)
        ]
        assert selection_score(True, True, True, True) == pytest.approx(best)
        scores[:] = kept
