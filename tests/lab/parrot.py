"""A trained run without training: its model copies the source."""

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
    """The source, and the number of symbols already written."""

    source: Any
    t: Any


class Parrot(NamedTuple):
    """A model that copies the source. The score of the right symbol is 10, and `scores` [V] are added to all."""

    scores: Any

    def start(self, source, keep, length):
        return Said(jnp.where(keep, source, END), jnp.zeros((), jnp.int32))

    def step(self, state, token):
        ids = jnp.pad(state.source, (0, 1), constant_values=END)
        right = jax.nn.one_hot(ids[jnp.minimum(state.t, len(ids) - 1)], len(self.scores))
        return self.scores + 10 * right, Said(state.source, state.t + 1)


def parrot(problem: Any = PROBLEM, decoder: Any = None, scores: Any = 0.0) -> Trained:
    """Returns a run whose model is a `Parrot`."""
    V = problem.shape.target_vocabulary
    model = Parrot(np.broadcast_to(np.asarray(scores, np.float32), V))
    return Trained(change(EXPERIMENT, decoder=decoder), problem, model)
