"""A batching rule that runs examples one after another, so that the working set of one fits into a cache."""

from __future__ import annotations

from collections.abc import Callable

import jax
from jax.custom_batching import sequential_vmap
from jaxtyping import PyTree

from attnlab.ops.varying import varying_like


def serial(function: Callable) -> Callable:
    """Makes a function that `jax.vmap` turns into a loop, also for its gradient.

    This suits gathers and sums along long lists. Ten examples at once would stream ten lists through memory, while ten
    passes one after another find one list in the cache. Nothing is stored for the gradient, which recomputes the
    function. The result is differentiable once, in reverse mode, and only with respect to x.

    Args:
      function: `function(x, *given)`.

    Returns:
      A function with the same signature.
    """
    forward = sequential_vmap(function)
    backward = sequential_vmap(lambda x, change, *given: jax.vjp(lambda x: function(x, *given), x)[1](change)[0])

    @jax.custom_vjp
    def one(x: PyTree, given: tuple) -> PyTree:
        return forward(x, *given)

    one.defvjp(
        lambda x, given: (forward(x, *given), (x, given)),
        lambda kept, change: (backward(kept[0], change, *kept[1]), None),
    )
    return lambda x, *given: one(varying_like(x, given), given)
