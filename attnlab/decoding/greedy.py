"""Greedy decoding: always chooses the most likely symbol."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax.numpy as jnp
from jaxtyping import Array, Int

from attnlab.decoding.base import DecodeProblem, Sequential


@dataclass(frozen=True)
class Greedy(Sequential):
    """Greedy decoding: each symbol is the most likely one given those before it.

    Of equally likely symbols, the first is chosen. Returns one sequence.
    """

    def choose(self, scores, key, t):
        """Returns the most likely symbol."""
        return jnp.argmax(scores)


def greedy(step: Callable, state: Any, begin: int, end: int, length: int, pad: int = 0) -> Int[Array, " length"]:
    """Returns the tokens [length] of greedy decoding for one example.

    The arguments and errors are those of `DecodeProblem`.
    """
    return Greedy().search(DecodeProblem(step, state, begin, end, length, pad)).tokens[0]
