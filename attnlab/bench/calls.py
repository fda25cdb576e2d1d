"""What the bench runs: a mechanism by heads, forwards alone and with its gradients."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import numpy as np

from attnlab.analysis.forms import attending, scanning
from attnlab.analysis.inputs import draw
from attnlab.analysis.measure import Program, compiled
from attnlab.mechanisms.base import Mechanism
from attnlab.ops.mask import Causal

MASKS = ("full", "causal")
FORWARD, BOTH = PASSES = ("forward", "forward+backward")


def by_heads(mechanism: Mechanism, mask: str) -> Callable:
    """(q [H T K], k, v, extra) -> y [H T V], under the full or the causal mask, in the mechanism's fastest form."""
    if mask == "full":
        return jax.vmap(attending(mechanism))
    return jax.vmap(scanning(mechanism) if mechanism.stateful else attending(mechanism, Causal()))


def inputs(mechanism: Mechanism, T: int, heads: int, width: int) -> tuple[Any, ...]:
    """(q, k, v, extra) with a leading axis of heads, in float32."""
    each = [draw(mechanism, T, width, width, np.float32, seed) for seed in range(heads)]
    q, k, v, extra = jax.tree.map(lambda *x: np.stack(x), *each)
    return q, k, v, extra | {name: np.asarray(x) for name, x in mechanism.heads(heads).items()}


def target(T: int, heads: int, width: int) -> np.ndarray:
    """What the gradient of the answers is taken to be: [H T V]."""
    return np.random.default_rng(T).standard_normal((heads, T, width)).astype(np.float32)


def with_gradients(function: Callable) -> Callable:
    """(target, …) -> (y, the gradient of every argument of `function`)."""

    def both(target, *arguments):
        y, back = jax.vjp(function, *arguments)
        return y, back(target)

    return both


def prepare(mechanism: Mechanism, mask: str, which: str, T: int, heads: int, width: int) -> Program | None:
    """The program of one cell of the bench, compiled; None where the mechanism refuses the mask."""
    mechanism = mechanism.sized(T)
    function, given = by_heads(mechanism, mask), inputs(mechanism, T, heads, width)
    try:
        jax.eval_shape(function, *given)
    except NotImplementedError:
        return None
    if which == FORWARD:
        return compiled(function, *given)
    return compiled(with_gradients(function), target(T, heads, width), *given)
