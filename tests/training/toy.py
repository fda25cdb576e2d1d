"""A model that compiles fast: the scores of a symbol depend only on the symbol before it."""

from dataclasses import dataclass

import jax
from flax import nnx

from attnlab.ops.layer import dropout


@dataclass(frozen=True)
class Bigram:
    """A table of scores, with dropout on them."""

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
