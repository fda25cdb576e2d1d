"""A study measures its step times once. With a budget in seconds, it resumes with its planned number of steps."""

from types import SimpleNamespace

import numpy as np
import pytest

from attnlab.lab import launch
from attnlab.lab.planning import step_time
from attnlab.lab.planning.step_time import Stopwatch, measured
from attnlab.lab.runs.run_folder import RunFolder
from attnlab.lab.study.study import Study, change
from attnlab.lab.study.variation import over
from attnlab.mechanisms import Linear, Softmax
from attnlab.storage.json_file import FolderError
from attnlab.training.shapes import Steps
from tests.small import EXPERIMENT

STUDY = Study(
    change(EXPERIMENT, **{"train.steps": 300}),
    over("model.mechanism", softmax=Softmax(), linear=Linear()),
    name="timed",
    budget="seconds",
)
PROBLEM = SimpleNamespace(pretraining_steps=0)


@pytest.fixture
def slow(monkeypatch):
    """Makes linear attention take three times as long. Returns the list of measured experiments."""
    asked = []

    def measure(experiment, problem, kind):
        asked.append(experiment)
        return 0.3 if isinstance(experiment.model.mechanism, Linear) else 0.1

    monkeypatch.setattr(step_time, "measured", measure)
    return asked


class Clocked:
    """A trainer whose step takes as many seconds as its batch is wide. Some dispatches compile or take far longer."""

    compile_seconds, now, calls, last = 0.0, 0.0, 0, 0

    def __init__(self, *given):
        pass

    def start(self):
        return None

    def batches(self, step, stop):
        Clocked.last = max(Clocked.last, stop - 1)
        kind = np.full(stop - step, self.width(step))
        return Steps({"x": np.zeros(self.width(step))}, kind, ()), stop - step

    def width(self, step):
        return 2

    def advance(self, state, steps, count):
        compiling = 100.0 if Clocked.calls in (0, 3) else 0.0
        self.compile_seconds += compiling
        noise = 50.0 if Clocked.calls in (0, 4) else 0.0
        Clocked.now += compiling + noise + count * steps.batches["x"].size
        Clocked.calls += 1
        return state, {}


@pytest.fixture
def clocked(monkeypatch):
    Clocked.now, Clocked.calls, Clocked.last = 0.0, 0, 0
    monkeypatch.setattr(step_time, "Trainer", Clocked)
    monkeypatch.setattr(step_time.time, "perf_counter", lambda: Clocked.now)


def test_step_time_excludes_compilation_first_dispatch_and_noise(clocked):
    assert measured(EXPERIMENT, None, range(300)) == 2.0
    assert Clocked.calls == step_time.DISPATCHES + 1


def test_lengths_count_by_their_frequency(clocked, monkeypatch):
    monkeypatch.setattr(Clocked, "width", lambda self, step: 9 if step % 24 < 8 else 1)
    assert measured(EXPERIMENT, None, range(300)) == (2 * 9 + 6 * 1) / 8


@pytest.mark.parametrize("pretraining_steps", [0, 5, 90, 300, 1000])
def test_pretraining_steps_count_by_their_fraction(clocked, monkeypatch, tmp_path, pretraining_steps):
    monkeypatch.setattr(Clocked, "width", lambda self, step: 9 if step < pretraining_steps else 1)
    experiment, problem = (
        change(EXPERIMENT, **{"train.steps": 300}),
        SimpleNamespace(pretraining_steps=pretraining_steps),
    )
    watch, share = Stopwatch(tmp_path), min(1, pretraining_steps / 300)
    assert watch(experiment, problem) == pytest.approx(9 * share + 1 - share)
    assert Clocked.last < 300
    # With another fraction of pretraining steps, neither kind of step is measured again.
    calls = Clocked.calls
    assert watch(change(experiment, **{"train.steps": 3000}), problem) == pytest.approx(
        1 + 8 * pretraining_steps / 3000
    )
    assert Clocked.calls == calls or pretraining_steps >= 300


def test_measured_times_are_kept_for_any_number_of_steps(slow, tmp_path):
    watch = Stopwatch(tmp_path)
    assert watch(EXPERIMENT, PROBLEM) == 0.1
    assert watch(change(EXPERIMENT, **{"train.steps": 9}), PROBLEM) == 0.1
    watch.keep()
    assert Stopwatch(tmp_path)(EXPERIMENT, PROBLEM) == 0.1
    assert len(slow) == 1
    assert Stopwatch(tmp_path)(change(EXPERIMENT, **{"train.batch_size": 3}), PROBLEM) == 0.1
    assert len(slow) == 2
    watch.file.write_text("[")
    with pytest.raises(FolderError, match=r"seconds\.json: not JSON"):
        Stopwatch(tmp_path)
    assert Stopwatch(tmp_path, fresh=True).found == {}


def test_a_resumed_study_keeps_its_planned_steps(slow, tmp_path, untrained):
    launch.run(STUDY, tmp_path)
    kept = RunFolder(tmp_path / "timed" / "linear").read("experiment")
    assert kept is not None
    assert kept["budget"] == "seconds"
    assert kept["experiment"]["train"]["steps"] == 100
    launch.run(STUDY, tmp_path)
    assert len(slow) == 2
    launch.run(STUDY, tmp_path, fresh=True)
    assert len(slow) == 4
