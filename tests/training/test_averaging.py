"""The mean of the last checkpoints."""

from dataclasses import replace

import numpy as np
import pytest

from attnlab.training.averaging import chosen, counted
from attnlab.training.config import Train
from attnlab.training.loop import Interrupted
from tests.training.test_loop import Listener, leaves
from tests.training.test_stopping import CONFIG, train

THREE = replace(CONFIG, target=None, average=3)


@pytest.mark.parametrize(
    ("train", "steps"),
    [
        (Train(steps=100, save_every=20), []),
        (Train(steps=100, save_every=20, average=3), [60, 80, 100]),
        (Train(steps=90, save_every=20, average=3), [60, 80, 90]),
        (Train(steps=10, save_every=20, average=1), [10]),
        (Train(steps=40, save_every=20, average=2), [20, 40]),
    ],
)
def test_the_last_of_the_steps_at_which_checkpoints_are_saved(train, steps):
    assert counted(train) == steps


def test_the_model_is_the_mean_of_them_and_training_goes_on_from_the_last(tmp_path):
    fitted = train(tmp_path, [], THREE)
    alone = train(tmp_path / "alone", [], replace(THREE, average=0))
    # Adam falls by its rate a step, from 1: over 60, 80 and 100 steps by 80 of them in the mean.
    np.testing.assert_allclose(fitted.model["w"], [1 - 0.1 * 80, 1 - 0.01 * 80], atol=1e-3)
    np.testing.assert_array_equal(fitted.state.model["w"], alone.state.model["w"])
    np.testing.assert_array_equal(alone.model["w"], alone.state.model["w"])
    assert alone.state.mean is None


def test_before_the_first_of_them_it_is_the_last_model(tmp_path):
    fitted = train(tmp_path, [], THREE)
    assert chosen(THREE, fitted.state, 59) is fitted.state.model
    assert chosen(THREE, fitted.state, 60) is fitted.state.mean


def test_interrupted_between_them_and_resumed_it_is_the_same(tmp_path):
    whole = train(tmp_path / "whole", [], THREE)
    for stop in (64, 80):
        with pytest.raises(Interrupted):
            train(tmp_path / "parts", [], THREE, Listener(stop=stop))
    again = train(tmp_path / "parts", [], THREE)
    for one, other in zip(leaves((whole.state, whole.model)), leaves((again.state, again.model)), strict=True):
        np.testing.assert_array_equal(one, other)
