"""Tests of the models of a run folder, one per checkpoint."""

import jax
import numpy as np
import pytest

from attnlab.lab.study.study import change
from attnlab.lab.trained.history import history
from attnlab.lab.trained.load import lane_of, trained
from attnlab.training.checkpoints import CheckpointError, Checkpoints
from tests.lab.unfinished import run, shapes
from tests.small import EXPERIMENT

# The model of the run is the mean of the last of its two checkpoints.
MEAN = change(EXPERIMENT, **{"train.average": 1, "train.learning_rate": (1e-3, 1e-2)})
FIRST_ALIVE = 2  # lanes are ordered by seed, then by rate; the first rate is chosen


@pytest.fixture(scope="module")
def base(tmp_path_factory):
    """Returns a run folder and the run that is loaded from it."""
    folder = run(tmp_path_factory.mktemp("runs") / "small" / "base", MEAN, diverged=(0,))
    return folder, trained(folder)


def same(one, other):
    for a, b in zip(jax.tree.leaves(one), jax.tree.leaves(other), strict=True):
        np.testing.assert_array_equal(a, b)


def test_every_checkpoint_the_newest_first_in_the_lane_that_is_loaded(base):
    folder, found = base
    newest, oldest = history(folder, found)
    saved = {step: Checkpoints(folder / "checkpoints").read(step, shapes(MEAN))[0] for step in (6, 12)}
    assert (newest.step, oldest.step) == (12, 6)
    same(newest.model, found.model)
    same(newest.model, jax.tree.map(lambda x: x[FIRST_ALIVE], saved[12].mean))
    same(oldest.model, jax.tree.map(lambda x: x[FIRST_ALIVE], saved[6].model))


def test_altered_checkpoint_is_reported_and_skipped(base):
    folder, found = base
    (folder / "checkpoints" / "12" / "manifest.json").write_text("{}")
    newest, oldest = history(folder, found)
    assert newest.model is None
    assert "manifest.json cannot be read" in newest.trouble
    assert (oldest.model is None, oldest.trouble) == (False, None)


def test_a_finished_run_has_one_lane_at_every_step():
    """Checks that the same lane is used at steps before a seed diverged."""
    experiment = change(EXPERIMENT, **{"train.seeds": 2, "train.learning_rate": 0.1})
    alive = np.array([True, True])
    assert lane_of(experiment, None, alive) == 0
    assert lane_of(experiment, {"learning_rate": 0.1, "seeds": [1]}, alive) == 1
    assert lane_of(experiment, {"learning_rate": 0.1, "seeds": [0, 1]}, ~alive | [False, True]) == 1
    with pytest.raises(CheckpointError, match=r"every lane at learning rate 0.1 diverged"):
        lane_of(experiment, {"learning_rate": 0.1, "seeds": []}, alive)
