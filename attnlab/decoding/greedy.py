"""Greedy decoding: the likeliest symbol, again and again."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Int


def greedy(step: Callable, state: Any, begin: int, end: int, length: int, pad: int = 0) -> Int[Array, " length"]:
    """The symbols that follow `begin`, each the likeliest given those before it; one example.

    `step(state, token) -> (scores [vocabulary], state)` has room for `length` tokens. After `end` follow `pad`s. The
    special symbols `begin` and `pad` are never chosen. Raises ValueError where the state says (`state.length`) that it
    has room for fewer.
    """
    room = getattr(state, "length", length)
    if length > room:
        raise ValueError(f"{length=} is more than the {room} tokens that the state has room for: start it longer")

    def choose(carry, _):
        state, token, done = carry
        scores, state = step(state, token)
        never = jnp.zeros_like(scores).at[jnp.array([begin, pad])].set(-jnp.inf)
        token = jnp.where(done, pad, jnp.argmax(scores + never)).astype(jnp.int32)
        return (state, token, done | (token == end)), token

    start = (state, jnp.asarray(begin, jnp.int32), jnp.asarray(False))
    _, tokens = jax.lax.scan(choose, start, length=length)
    return tokens
