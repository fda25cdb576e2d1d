"""Checks the mean of the last models."""

from dataclasses import replace

import numpy as np
import pytest

from attnlab.lab.study import serialize
from attnlab.training.averaging import averaged, averaged_steps
from attnlab.training.config import Train
from attnlab.training.loop import Interrupted
from tests.training.test_loop import Listener, leaves
from tests.training.test_stopping import CONFIG, train

# Validation runs only in the middle, so dispatches end at the averaged steps for the mean alone.
THREE = replace(CONFIG, target=None, average=3, evaluate_every=50)


@pytest.mark.parametrize(
    ("train", "steps"),
    [
        (Train(steps=100, save_every=20), []),
        (Train(steps=10, save_every=20, average=1), [10]),
        # If enough checkpoints lie within the last tenth of the run, their steps are averaged.
        (Train(steps=1000, save_every=20, average=3), [960, 980, 1000]),
        (Train(steps=990, save_every=20, average=3), [960, 980, 990]),
        # If the checkpoints would span half of the run, as many models of its last tenth are averaged.
        (Train(steps=800, save_every=100, average=5), [720, 740, 760, 780, 800]),
        (Train(steps=100, save_every=20, average=3), [90, 95, 100]),
        (Train(steps=12, save_every=6, average=2), [11, 12]),
        # Older runs use a span of 1.
        (Train(steps=100, save_every=20, average=3, average_span=1.0), [60, 80, 100]),
        (Train(steps=90, save_every=20, average=5, average_span=1.0), [20, 40, 60, 80, 90]),
        (Train(steps=40, save_every=20, average=2, average_span=1.0), [20, 40]),
        (Train(steps=100, save_every=50, average=30, average_span=0.29), list(range(71, 101))),
    ],
)
def test_the_steps_whose_models_are_averaged(train, steps):
    assert averaged_steps(train) == steps


def test_more_models_than_steps_are_refused():
    with pytest.raises(
        ValueError, match=r"train.average=31 must be at most 30, the number of models within .*=0.29 of .*=100"
    ):
        Train(steps=100, average=31, average_span=0.29)


@pytest.mark.parametrize(("average", "share"), [(5, 1.0), (0, 0.1)])
def test_older_runs_average_all_of_their_checkpoints(average, share):
    written = serialize.write(Train(average=average, average_span=1.0))
    del written["average_span"]
    assert serialize.read(written, Train).average_span == share


def test_the_model_is_the_mean_and_training_continues_from_the_last(tmp_path):
    fitted = train(tmp_path, [], THREE)
    alone = train(tmp_path / "alone", [], replace(THREE, average=0))
    # Adam lowers each number from 1 by its rate per step. The mean over steps 90, 95 and 100 is the model of step 95.
    np.testing.assert_allclose(fitted.model["w"], [1 - 0.1 * 95, 1 - 0.01 * 95], atol=1e-3)
    np.testing.assert_array_equal(fitted.state.model["w"], alone.state.model["w"])
    np.testing.assert_array_equal(alone.model["w"], alone.state.model["w"])
    assert alone.state.mean is None


def test_before_the_first_averaged_step_it_is_the_last_model(tmp_path):
    fitted = train(tmp_path, [], THREE)
    assert averaged(THREE, fitted.state, 89) is fitted.state.model
    assert averaged(THREE, fitted.state, 90) is fitted.state.mean


def test_an_interruption_between_averaged_steps_changes_nothing(tmp_path):
    whole = train(tmp_path / "whole", [], THREE)
    for stop in (92, 95):
        with pytest.raises(Interrupted):
            train(tmp_path / "parts", [], THREE, Listener(stop=stop))
    again = train(tmp_path / "parts", [], THREE)
    for one, other in zip(leaves((whole.state, whole.model)), leaves((again.state, again.model)), strict=True):
        np.testing.assert_array_equal(one, other)
