"""Whether the forms of a mechanism are one mechanism: each against the others, in float64.

A form is a way to compute the same thing: at once, by blocks, token after token, padded, lifted by `vmap`. Each
comparison is max |a − b|, or None where the mechanism has no such form.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from attnlab.analysis.inputs import Inputs, draw, rows, spoil
from attnlab.mechanisms.base import Mechanism
from attnlab.mechanisms.causal import causal
from attnlab.ops.mask import Causal, Full, KeyPadding, Mask, QueryPadding

Found = dict[str, float | None]
Pairs = Iterator[tuple[str, float | None]]
KINDS = ("causal", "extend", "padding", "lifted")


def agreement(
    mechanism: Mechanism, T: int = 131, K: int = 16, V: int = 24, kinds: tuple[str, ...] = KINDS
) -> dict[str, Found]:
    """max |a − b| over the forms of `mechanism` in float64, by kind of form; None where there is no such form.

    `causal`: `attend` under `Causal()` and blocks of several sizes against one token at a time, for T tokens and for
    one. `extend`: given in uneven parts. `padding`: padded with NaN against the shorter sequence. `lifted`: `vmap`
    against a loop, and without `jit`. T is best prime: no block divides it. K ≠ V shows one taken for the other.
    """
    mechanism = mechanism.sized(T)
    with jax.enable_x64(True):
        inputs = draw(mechanism, T, K, V)
        compare = {"causal": _causal, "extend": _extend, "padding": _padding, "lifted": _lifted}
        return {kind: dict(compare[kind](mechanism, inputs)) for kind in kinds}


def attending(mechanism: Mechanism, mask: Mask = Full()) -> Callable:
    """(q, k, v, extra) -> y by `attend`."""
    return lambda q, k, v, extra: mechanism.attend(q, k, v, mask, **extra)


def scanning(mechanism: Mechanism, block: int | None = None) -> Callable:
    """(q, k, v, extra, keep=None) -> y by `causal`; refused by a mechanism that does not decode."""

    def run(q, k, v, extra, keep=None):
        if not mechanism.stateful:
            raise NotImplementedError(f"{mechanism} has no causal form")
        return causal(mechanism, q, k, v, block=block, keep=keep, **extra)

    return run


def answer(run: Callable, *arguments: Any) -> np.ndarray | None:
    """What a call answers; None where the mechanism refuses it."""
    try:
        return np.asarray(run(*arguments))
    except NotImplementedError as error:
        if _by_jax(error):
            raise
        return None


def difference(a: np.ndarray | None, b: np.ndarray | None) -> float | None:
    """max |a − b|, NaN where either holds one; None where either is missing. Raises ValueError for unlike shapes."""
    if a is None or b is None:
        return None
    if a.shape != b.shape:
        raise ValueError(f"two forms answer in shapes {a.shape} and {b.shape}")
    return float(np.max(np.abs(a - b), initial=0.0))


def _by_jax(error: NotImplementedError) -> bool:
    """Whether jax has no such operation, which is a fault, rather than the mechanism no such form, which is none."""
    trace = error.__traceback__
    while trace and trace.tb_next:
        trace = trace.tb_next
    return trace is not None and trace.tb_frame.f_globals.get("__name__", "").split(".")[0] in ("jax", "jaxlib")


def _causal(mechanism: Mechanism, inputs: Inputs) -> Pairs:
    T = inputs[0].shape[0]
    forms = {"attend": attending(mechanism, Causal())}
    forms |= {f"block {block}": scanning(mechanism, block) for block in (None, 7, 64, T)}
    for length, names in ((T, list(forms)), (1, ["attend", "block None", "block 7"])):
        given = rows(mechanism, inputs, slice(0, length))
        steps = answer(jax.jit(scanning(mechanism, 1)), *given)
        for name in names:
            yield name + ("" if length == T else ", T=1"), difference(answer(jax.jit(forms[name]), *given), steps)


def _extend(mechanism: Mechanism, inputs: Inputs) -> Pairs:
    T = inputs[0].shape[0]
    whole = answer(jax.jit(scanning(mechanism)), *inputs)
    cuts = sorted({0, 1, T // 3, T})
    yield f"in {len(cuts) - 1} parts", difference(None if whole is None else _in_parts(mechanism, inputs, cuts), whole)


def _in_parts(mechanism: Mechanism, inputs: Inputs, cuts: list[int]) -> np.ndarray:
    """The answers to a sequence given part by part, the state handed on."""
    extend = jax.jit(lambda state, q, k, v, extra: mechanism.extend(state, q, k, v, **extra))
    state, parts = mechanism.start(cuts[-1], inputs[1].shape[1], inputs[2].shape[1]), []
    for a, b in pairwise(cuts):
        y, state = extend(state, *rows(mechanism, inputs, slice(a, b)))
        parts.append(y)
    return np.concatenate(parts)


def _padding(mechanism: Mechanism, inputs: Inputs) -> Pairs:
    # As many are kept in each, so that the shorter sequences are of one shape: compiled once.
    T, behind = inputs[0].shape[0], np.arange(inputs[0].shape[0]) < inputs[0].shape[0] - inputs[0].shape[0] // 4
    keeps = {"before": behind[::-1], "between": np.random.default_rng(T).permutation(behind)}
    attend = jax.jit(
        lambda q, k, v, extra, keep: mechanism.attend(q, k, v, KeyPadding(keep) & QueryPadding(keep), **extra)
    )
    # `attend` numbers keys as they stand, so only padding behind leaves the others at their places.
    yield "attend, behind", _padded(mechanism, inputs, behind, attend, jax.jit(attending(mechanism)))
    alone = jax.jit(scanning(mechanism))
    for block in (None, 7):
        padded = jax.jit(scanning(mechanism, block))
        for where, keep in keeps.items():
            yield f"block {block}, {where}", _padded(mechanism, inputs, keep, padded, alone)


def _padded(mechanism: Mechanism, inputs: Inputs, keep: np.ndarray, padded: Callable, alone: Callable) -> float | None:
    short = answer(alone, *rows(mechanism, inputs, keep))
    y = answer(padded, *spoil(mechanism, inputs, keep), keep)
    return difference(None if y is None else y[keep], short)


def _lifted(mechanism: Mechanism, inputs: Inputs) -> Pairs:
    T, K, V = min(inputs[0].shape[0], 13), inputs[1].shape[1], inputs[2].shape[1]
    first, second = (draw(mechanism, T, K, V, seed=seed) for seed in (1, 2))
    both = jax.tree.map(lambda *x: np.stack(x), first, second)
    for name, run in {"attend": attending(mechanism), "causal": scanning(mechanism)}.items():
        one, other = (answer(jax.jit(run), *given) for given in (first, second))
        loop = None if one is None or other is None else np.stack([one, other])
        yield f"{name}, vmap", difference(answer(jax.jit(jax.vmap(run)), *both), loop)
        yield f"{name}, eager", difference(answer(run, *jax.tree.map(jnp.asarray, first)), one)
