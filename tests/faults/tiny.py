"""An experiment so small that it can be run hundreds of times.

It has dropout and two learning rates, and it evaluates and saves often.
"""

from dataclasses import dataclass

import jax
from flax import nnx

from attnlab.lab.study.study import Experiment
from attnlab.ops.layer import dropout
from attnlab.tasks.synthetic.recall import Recall
from attnlab.training.config import Train


@dataclass(frozen=True)
class Follower:
    """A table of scores with dropout. The scores of a symbol depend only on the symbol before it."""

    dropout: float = 0.1

    def create(self, key, shape):
        return Table(key, self, shape.vocabulary)


class Table(nnx.Module):
    def __init__(self, key, config, size):
        self.config, self.scores = config, nnx.Param(jax.random.normal(key, (size, size)))

    def __call__(self, tokens, keep, key=None):
        return dropout(self.scores[...][tokens], self.config.dropout, key)

    def start(self, length):
        return ()


TINY = Experiment(
    Recall(vocabulary=8, pairs=3, valid_examples=8, test_examples=8),
    Follower(),
    Train(steps=240, batch_size=4, learning_rate=(1e-3, 1e-2), warmup=8, evaluate_every=12, save_every=20),
)
