"""Greedy decoding: the likeliest symbol, again and again."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax.numpy as jnp
from jaxtyping import Array, Int

from attnlab.decoding.base import Search, SearchResult


@dataclass(frozen=True)
class Greedy(Search):
    """Each symbol is the likeliest given those before it; of equals, the first. One answer."""

    def search(self, request, key):
        """The one text."""
        tokens, score = request.generate(lambda scores, t: jnp.argmax(scores))
        return SearchResult(tokens[None], score[None])


def greedy(step: Callable, state: Any, begin: int, end: int, length: int, pad: int = 0) -> Int[Array, " length"]:
    """The tokens of `Greedy`, for one example.

    Raises ValueError where the state says (`state.length`) that it has room for fewer.
    """
    return Greedy()(step, state, begin, end, length, pad).tokens[0]
