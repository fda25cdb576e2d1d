"""Steps that are timed are those of training."""

import numpy as np
import pytest

from attnlab.bench.steps import steps
from tests.small import TINY


def test_each_run_continues_where_the_last_one_ended():
    """Eight batches again and again: what is learned of them makes the loss of the last one fall."""
    program = steps(TINY["model"], TINY["task"].load(), 8)
    losses = [float(program.answer()[0]) for _ in range(20)]
    assert np.isfinite(losses).all()
    assert losses[-1] < 0.9 * losses[0]
    assert program.memory > 0


def test_fewer_steps_give_fewer_losses_and_zero_steps_are_refused():
    program = steps(TINY["model"], TINY["task"].load(), 8, count=3)
    assert program.run().shape == (3, 1)
    with pytest.raises(ValueError, match=r"count=9 must be 1 … 8"):
        steps(TINY["model"], TINY["task"].load(), 8, count=9)
