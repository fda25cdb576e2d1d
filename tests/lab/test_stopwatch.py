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


def test_a_step_takes_time_and_compiling_it_is_no_part_of_that():
    problem = EXPERIMENT.task.load()
    assert 0 < measured(EXPERIMENT, problem) < 2


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
