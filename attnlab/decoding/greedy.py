"""Greedy decoding: always chooses the most likely symbol."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax.numpy as jnp
from jaxtyping import Array, Int

from attnlab.decoding.base import Search, SearchResult


@dataclass(frozen=True)
class Greedy(Search):
    """Greedy decoding: each symbol is the most likely one given those before it.

    Of equally likely symbols, the first is chosen. Returns one sequence.
    """

    def search(self, request, key):
        """Generates the sequence."""
        tokens, score = request.generate(lambda scores, t: jnp.argmax(scores))
        return SearchResult(tokens[None], score[None])


def greedy(step: Callable, state: Any, begin: int, end: int, length: int, pad: int = 0) -> Int[Array, " length"]:
    """Returns the tokens [length] of greedy decoding for one example.

    The arguments and errors are those of `Search.__call__`.
    """
    return Greedy()(step, state, begin, end, length, pad).tokens[0]
