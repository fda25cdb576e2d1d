"""The programs that the bench runs: a mechanism over several heads, forward only or with gradients."""

from __future__ import annotations

from collections.abc import Callable

import jax
import numpy as np

from attnlab.analysis.forms import attending, scanning
from attnlab.analysis.inputs import Inputs, draw
from attnlab.analysis.measure import Program, compiled
from attnlab.mechanisms.base import Mechanism
from attnlab.ops.mask import Causal

MASKS = ("full", "causal")
FORWARD, BOTH = PASSES = ("forward", "forward+backward")


def by_heads(mechanism: Mechanism, mask: str) -> Callable:
    """Return (q [H T K], k, v, extra) -> y [H T V] under the "full" or the "causal" mask, in the fastest form."""
    if mask == "full":
        return jax.vmap(attending(mechanism))
    return jax.vmap(scanning(mechanism) if mechanism.traits.decodes else attending(mechanism, Causal()))


def inputs(mechanism: Mechanism, T: int, heads: int, width: int) -> Inputs:
    """Draw (q, k, v, extra) with a leading axis of heads, in float32.

    Args:
        mechanism: The mechanism, which determines the extra inputs.
        T: The length of the sequence.
        heads: The number of heads H.
        width: The width of keys and values.

    Returns:
        q, k `[H T K]`, v `[H T V]`, and the extra inputs by name.
    """
    each = [draw(mechanism, T, width, width, np.float32, seed) for seed in range(heads)]
    q, k, v, extra = jax.tree.map(lambda *x: np.stack(x), *each)
    return q, k, v, extra | {name: np.asarray(x) for name, x in mechanism.heads(heads).items()}


def target(T: int, heads: int, width: int) -> np.ndarray:
    """Draw the cotangent of the output, `[H T V]`.

    Args:
        T: The length of the sequence, in tokens. It is also the seed.
        heads: The number of heads H.
        width: The width V of the values.
    """
    return np.random.default_rng(T).standard_normal((heads, T, width)).astype(np.float32)


def with_gradients(function: Callable) -> Callable:
    """Return a function (target, …) -> (y, the gradients of all arguments of `function`)."""

    def both(target, *arguments):
        y, back = jax.vjp(function, *arguments)
        return y, back(target)

    return both


def prepare(mechanism: Mechanism, mask: str, which: str, T: int, heads: int, width: int) -> Program | None:
    """Compile the program of one measurement. Returns None if the mechanism refuses the mask.

    Args:
        mechanism: The mechanism. It is resized to T tokens.
        mask: "full" or "causal".
        which: What is measured: the forward pass alone or with gradients.
        T: The length of the sequence, in tokens.
        heads: The number of heads.
        width: The width of keys and values.
    """
    mechanism = mechanism.with_length(T)
    function, given = by_heads(mechanism, mask), inputs(mechanism, T, heads, width)
    try:
        jax.eval_shape(function, *given)
    except NotImplementedError:
        return None
    if which == FORWARD:
        return compiled(function, *given)
    return compiled(with_gradients(function), target(T, heads, width), *given)
