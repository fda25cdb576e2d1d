"""Greedy decoding: always chooses the most likely symbol."""

from dataclasses import dataclass

import jax.numpy as jnp
from jaxtyping import Array, Int, PyTree

from attnlab.decoding.base import DecodeProblem, Sequential, Step


@dataclass(frozen=True)
class Greedy(Sequential):
    """Greedy decoding: each symbol is the most likely one given those before it.

    Of equally likely symbols, the first is chosen. Returns one sequence.
    """

    def choose(self, scores, key, t):
        """Returns the most likely symbol."""
        return jnp.argmax(scores)


def greedy(step: Step, state: PyTree, begin: int, end: int, length: int) -> Int[Array, " length"]:
    """Returns the tokens [length] of greedy decoding for one example.

    The arguments and errors are those of `DecodeProblem`, and the padding is 0.
    """
    return Greedy().search(DecodeProblem(step, state, begin, end, length)).tokens[0]
