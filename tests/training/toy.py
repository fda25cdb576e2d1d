"""A model that compiles fast. The scores of a symbol depend only on the previous symbol."""

from dataclasses import dataclass

import jax
from flax import nnx

from attnlab.ops.layer import dropout


@dataclass(frozen=True)
class Bigram:
    """The config of a table of scores with dropout."""

    dropout: float = 0.1

    def create(self, key, shape):
        return Table(key, self, shape.target_vocabulary)


class Table(nnx.Module):
    def __init__(self, key, config, size):
        self.config, self.scores = config, nnx.Param(jax.random.normal(key, (size, size)))

    def __call__(self, source, target, source_keep, target_keep, key=None):
        return dropout(self.scores[...][target], self.config.dropout, key)

    def start(self, source, source_keep, length):
        return ()

    def step(self, state, token):
        return self.scores[...][token], state
