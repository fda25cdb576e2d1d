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

    def choose(self, logits, key, t):
        """Returns the most likely symbol."""
        return jnp.argmax(logits)


def greedy(step: Step, state: PyTree, begin: int, end: int, length: int) -> Int[Array, " length"]:
    """Returns the tokens [length] of greedy decoding for one example.

    Tokens after `end` are 0. Symbol 0 is therefore never chosen.

    Args:
        step: function `step(state, token) -> (logits [V], state)` for the symbol that follows `token`.
        state: state of the model before the first symbol.
        begin: symbol that comes before the first token. It is never chosen.
        end: symbol that ends a sequence.
        length: maximum number of tokens, including `end`.

    Raises:
        ValueError: as `DecodeProblem`.
    """
    return Greedy().search(DecodeProblem(step, state, begin, end, length)).tokens[0]
