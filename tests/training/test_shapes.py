"""Checks steps of several shapes in one dispatch."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attnlab.data.batches import Buckets
from attnlab.training import state as lane
from attnlab.training.config import Train
from attnlab.training.shapes import stack_steps
from attnlab.training.trainer import DISPATCH, Trainer

TRAIN = Train(steps=12, batch_size=4, seeds=2, warmup=0, schedule="constant", learning_rate=0.1)
SHAPES = [{"x": (2, 4)}, {"x": (2, 8)}]


class Sums:
    """Batches of three widths. The loss is the mean square of w times each row's sum, minus the batch's width."""

    def __init__(self):
        self.buckets = Buckets(np.repeat([3, 7, 12], [30, 20, 5]), count=3)
        self.first_steps = self.buckets.first_steps

    def batch(self, seed, step, size):
        rows, (width,) = self.buckets.batch(seed, step, size)
        return {"x": np.sin(np.arange(width)[None] + rows[:, None]).astype(np.float32)}

    def loss(self, model, batch, key):
        x = batch["x"]
        return jnp.mean((model["w"] * x.sum(axis=1) - x.shape[1]) ** 2), {"width": jnp.float32(x.shape[1])}


def trained(trainer, stops):
    """Returns the weights, the width of each step and the trainer, after dispatches that end at these steps."""
    state, step, widths = trainer.start(), 0, []
    for stop in stops:
        while step < stop:
            steps, count = trainer.batches(step, stop)
            state, metrics = trainer.advance(state, steps, count)
            widths += metrics["width"][:, 0].tolist()
            step += count
    return np.asarray(state.model["w"]), widths, trainer


def made():
    return Trainer(lambda key: {"w": jax.random.normal(key)}, Sums(), TRAIN)


def test_padding_to_one_shape_does_not_change_training():
    """The weights equal those of one step after the other, each compiled for its own shape."""
    weights, widths, trainer = trained(made(), [12])
    problem = Sums()
    assert widths == [problem.buckets.batch(0, step, 1)[1][0] for step in range(12)]
    assert len(set(widths)) == 3
    assert len(trainer.compiled) == 1
    for n, seed in enumerate(TRAIN.seed_list):
        state = lane.start(lambda key: {"w": jax.random.normal(key)}, TRAIN, jnp.uint32(seed), jnp.float32(0.1))
        for step in range(12):
            state, _ = lane.step(problem.loss, TRAIN, state, problem.batch(seed, step, 4))
        np.testing.assert_allclose(weights[n], state.model["w"], rtol=1e-5)


def test_a_step_does_not_depend_on_its_dispatch():
    np.testing.assert_array_equal(trained(made(), [12])[0], trained(made(), [1, 2, 5, 6, 12])[0])


def test_batches_are_padded_to_the_largest_shape_and_filled_up():
    rows = [{"x": np.full((3, 2, width), width)} for width in (8, 4)]
    steps = stack_steps(rows, SHAPES, DISPATCH)
    assert steps.batches["x"].shape == (DISPATCH, 3, 2, 8)
    assert steps.kind.tolist() == [1] + [0] * 7
    assert steps.batches["x"][1, 0, 0].tolist() == [4] * 4 + [0] * 4


def test_a_shape_without_a_first_step_is_refused():
    with pytest.raises(ValueError, match="first_steps"):
        stack_steps([{"x": np.zeros((3, 2, 5))}], SHAPES, DISPATCH)
