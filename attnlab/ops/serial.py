"""What `jax.vmap` calls one after another, so that the work of one stays small enough for a cache."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
from jax.custom_batching import sequential_vmap


def serial(function: Callable[..., Any]) -> Callable[..., Any]:
    """`function(x, *given)`, of which `jax.vmap` makes a loop, and a loop of its gradient for x.

    For gathers and sums along long lists: ten lanes at once go through ten lists in memory, one lane after another
    ten times through one that is at hand. Nothing of a call is kept for its gradient, which computes it again.
    Differentiable once, in reverse, and in x alone.
    """
    forward = sequential_vmap(function)
    backward = sequential_vmap(lambda x, change, *given: jax.vjp(lambda x: function(x, *given), x)[1](change)[0])

    @jax.custom_vjp
    def one(x: Any, given: tuple) -> Any:
        return forward(x, *given)

    one.defvjp(
        lambda x, given: (forward(x, *given), (x, given)),
        lambda kept, change: (backward(kept[0], change, *kept[1]), None),
    )
    return lambda x, *given: one(x, given)
