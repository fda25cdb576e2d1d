"""From a model that scores the next symbol to an answer: over `step(state, token) -> (scores, state)`."""

from attnlab.decoding.greedy import greedy

__all__ = ["greedy"]
