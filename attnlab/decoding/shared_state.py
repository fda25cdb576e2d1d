"""Which arrays of a model's decoding state are the same for all hypotheses, so that one copy is enough."""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.extend as jex
from jaxtyping import Array, Int, PyTree


def shared(step: Callable, state: PyTree, token: Int[Array, ""]) -> PyTree:
    """Return for each array of a state whether it does not depend on the tokens, as a tree of booleans.

    Examples are the keys and values of a source, and the number of tokens so far. An array is shared if its new value
    is computed from shared arrays only.

    Args:
        step: Function `(state, token) -> (logits, state)`.
        state: The state before the first token.
        token: The first token.
    """
    program = jax.make_jaxpr(lambda state, token: step(state, token)[1])(state, token).jaxpr
    count = len(jax.tree.leaves(state))
    found = [True] * count
    while True:
        depends = dict(zip(program.invars, [*(not each for each in found), True], strict=True))
        # A variable that no equation and no argument defines is a constant of the program.
        changes = lambda x: not isinstance(x, jex.core.Literal) and depends.get(x, False)  # noqa: B023
        for equation in program.eqns:
            depends |= dict.fromkeys(equation.outvars, any(map(changes, equation.invars)))
        after = [known and not changes(new) for known, new in zip(found, program.outvars, strict=True)]
        if after == found:
            return jax.tree.unflatten(jax.tree.structure(state), found)
        found = after


def axes(is_shared: PyTree) -> PyTree:
    """Return the axis of the hypotheses of each array, for `jax.vmap`: None if it is shared, else 0."""
    return jax.tree.map(lambda each: None if each else 0, is_shared)
