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
    found, before = [True] * len(program.outvars), None
    while found != before:
        before, found = found, _still_shared(program, found)
    return jax.tree.unflatten(jax.tree.structure(state), found)


def _still_shared(program: jex.core.Jaxpr, found: list[bool]) -> list[bool]:
    """Return which arrays of those that are shared before a step are shared after it."""
    changing = {x for x, is_shared in zip(program.invars, [*found, False], strict=True) if not is_shared}
    changes = lambda x: not isinstance(x, jex.core.Literal) and x in changing
    for equation in program.eqns:
        if any(map(changes, equation.invars)):
            changing |= set(equation.outvars)
    return [known and not changes(new) for known, new in zip(found, program.outvars, strict=True)]


def axes(is_shared: PyTree) -> PyTree:
    """Return the axis of the hypotheses of each array, for `jax.vmap`: None if it is shared, else 0."""
    return jax.tree.map(lambda each: None if each else 0, is_shared)
