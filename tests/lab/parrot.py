"""A trained run without training: its model says what it is given, as far as it may."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from attnlab.data.text.vocabulary import END
from attnlab.lab.study.study import change
from attnlab.lab.trained.load import Trained
from tests.small import EXPERIMENT, TASK

PROBLEM = TASK.load()


class Said(NamedTuple):
    """What is to be said, and how much of it was."""

    source: Any
    t: Any


class Parrot(NamedTuple):
    """Says the symbols it was given; `scores` [V] are added to each symbol's, the right one's being 10."""

    scores: Any

    def start(self, source, keep, length):
        return Said(jnp.where(keep, source, END), jnp.zeros((), jnp.int32))

    def step(self, state, token):
        ids = jnp.pad(state.source, (0, 1), constant_values=END)
        right = jax.nn.one_hot(ids[jnp.minimum(state.t, len(ids) - 1)], len(self.scores))
        return self.scores + 10 * right, Said(state.source, state.t + 1)


def parrot(problem: Any = PROBLEM, decoder: Any = None, scores: Any = 0.0) -> Trained:
    """The run of a parrot on a problem."""
    V = problem.shape.target_vocabulary
    model = Parrot(np.broadcast_to(np.asarray(scores, np.float32), V))
    return Trained(change(EXPERIMENT, decoder=decoder), problem, model)
