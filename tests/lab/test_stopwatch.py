"""Steps timed once for a study, and a study in seconds that goes on with the steps it was planned with."""

import pytest

from attnlab.lab import runs, stopwatch
from attnlab.lab.folder import RunFolder
from attnlab.lab.jsonfile import FolderError
from attnlab.lab.stopwatch import Stopwatch, measured
from attnlab.lab.study import Study, change, over
from attnlab.mechanisms import Linear, Softmax
from tests.small import EXPERIMENT

STUDY = Study(
    change(EXPERIMENT, **{"train.steps": 300}),
    over("model.mechanism", softmax=Softmax(), linear=Linear()),
    name="timed",
    budget="seconds",
)


@pytest.fixture
def slow(monkeypatch):
    """Linear attention takes three times as long; what was measured is told."""
    asked = []

    def measure(experiment, problem):
        asked.append(experiment)
        return 0.3 if isinstance(experiment.model.mechanism, Linear) else 0.1

    monkeypatch.setattr(stopwatch, "measured", measure)
    return asked


def test_a_step_takes_time_and_neither_compiling_nor_the_first_dispatch_is_part_of_it(monkeypatch):
    class Clocked:
        """Compiles for 100 s at first and once more on the way; a dispatch takes 9 s the first time, then 2 s."""

        compile_seconds, now, calls = 0.0, 0.0, 0

        def __init__(self, *given):
            pass

        def start(self):
            return None

        def batches(self, step, stop):
            return {}, stop - step

        def advance(self, state, batches, count):
            compiling = 100.0 if Clocked.calls in (0, 3) else 0.0
            self.compile_seconds += compiling
            Clocked.now += compiling + (2.0 if Clocked.calls else 9.0)
            Clocked.calls += 1
            return state, {}

    monkeypatch.setattr(stopwatch, "Trainer", Clocked)
    monkeypatch.setattr(stopwatch.time, "perf_counter", lambda: Clocked.now)
    assert measured(EXPERIMENT, None) == 2.0 / stopwatch.DISPATCH
    assert Clocked.calls == stopwatch.DISPATCHES + 1


def test_what_was_measured_is_kept_whatever_the_number_of_steps(slow, tmp_path):
    watch = Stopwatch(tmp_path)
    assert watch(EXPERIMENT, None) == 0.1
    assert watch(change(EXPERIMENT, **{"train.steps": 9}), None) == 0.1
    watch.keep()
    assert Stopwatch(tmp_path)(EXPERIMENT, None) == 0.1
    assert len(slow) == 1
    assert Stopwatch(tmp_path)(change(EXPERIMENT, **{"train.batch_size": 3}), None) == 0.1
    assert len(slow) == 2
    watch.file.write_text("[")
    with pytest.raises(FolderError, match=r"seconds\.json: not JSON"):
        Stopwatch(tmp_path)


def test_a_study_goes_on_with_the_steps_it_was_planned_with(slow, tmp_path, untrained):
    runs.run(STUDY, tmp_path)
    kept = RunFolder(tmp_path / "timed" / "linear").read("experiment")
    assert kept is not None
    assert kept["budget"] == "seconds"
    assert kept["experiment"]["train"]["steps"] == 100
    runs.run(STUDY, tmp_path)
    assert len(slow) == 2
    runs.run(STUDY, tmp_path, fresh=True)
    assert len(slow) == 4
