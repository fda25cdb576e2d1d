"""Checks that the timed steps are those of training."""

import jax.numpy as jnp
import numpy as np
import pytest

from attnlab.bench.steps import dispatch, steps
from attnlab.training.config import Train
from attnlab.training.trainer import Trainer
from tests.small import TINY


def test_each_run_continues_where_the_last_one_ended():
    """The program repeats eight batches. The loss of the last one falls because each run continues training."""
    program = steps(TINY["model"], TINY["task"].load(), 8)
    losses = [float(program.answer()[0]) for _ in range(20)]
    assert np.isfinite(losses).all()
    assert losses[-1] < 0.9 * losses[0]
    assert program.memory > 0


def test_the_work_of_a_dispatch_is_that_of_its_gradients():
    """A model of one matrix has one forward and one backward product, because the batch needs no gradient."""

    class Maps:
        shape, first_steps = None, (0,)

        def batch(self, seed, step, size):
            return {"x": np.ones((size, 5), np.float32)}

        def loss(self, model, batch, key):
            return jnp.sum(batch["x"] @ model), {}

    train = Train(steps=10, batch_size=7, learning_rate=0.1, schedule="constant", warmup=0, seeds=2)
    trainer = Trainer(lambda key: jnp.ones((5, 3)), Maps(), train)
    batches, _ = trainer.batches(0, 4)
    program = dispatch(trainer, batches, 4)
    # The product, its gradient, and the sum of its 7 × 3 outputs, for 2 seeds and 4 steps.
    assert program.flops == 2 * 4 * (2 * (2 * 7 * 5 * 3) + 7 * 3)
    # At least three arrays of 5 × 3 per seed (the model and two moments) are read and written by each step.
    assert program.moved >= 4 * 2 * (2 * 3 * 5 * 3 * 4)
    one = dispatch(trainer, trainer.batches(0, 1)[0], 1)
    assert (program.flops, program.moved) == (4 * one.flops, 4 * one.moved)
    assert program.run().shape == (4, 2)


def test_fewer_steps_give_fewer_losses_and_zero_steps_are_refused():
    program = steps(TINY["model"], TINY["task"].load(), 8, count=3)
    assert program.run().shape == (3, 1)
    with pytest.raises(ValueError, match=r"count=9 must be 1 … 8"):
        steps(TINY["model"], TINY["task"].load(), 8, count=9)
