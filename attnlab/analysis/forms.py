"""Checks that all forms of a mechanism compute the same function, in float64.

A form is a way to compute it: all at once, by blocks, token by token, with padding, or under `jax.vmap`. Each
comparison gives max |a − b|, or None if the mechanism has no such form.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import pairwise

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import PyTree

from attnlab.analysis.inputs import Inputs, draw, fill_padding_with_nan, rows
from attnlab.mechanisms.base import Mechanism
from attnlab.mechanisms.causal import causal
from attnlab.ops.mask import Causal, Full, KeyPadding, Mask, QueryPadding

Found = dict[str, float | None]
Pairs = Iterator[tuple[str, float | None]]
KINDS = ("causal", "extend", "padding", "vmap/jit")


def agreement(
    mechanism: Mechanism, T: int = 131, K: int = 16, V: int = 24, kinds: tuple[str, ...] = KINDS
) -> dict[str, Found]:
    """Returns max |a − b| over the forms of a mechanism in float64, by kind of form.

    The kinds are:

    - `causal`: `attend` under `Causal()` and blocks of several sizes, compared with one token at a time. It is computed
      for T tokens and for one.
    - `extend`: the sequence in uneven parts, compared with the whole.
    - `padding`: a sequence padded with NaN, compared with the shorter sequence.
    - `vmap/jit`: `jax.vmap` compared with a loop, and eager execution compared with `jit`.

    Args:
      mechanism: the mechanism.
      T: number of tokens. A prime is best, because no block size divides it. Defaults to 131.
      K: width of queries and keys. Defaults to 16.
      V: width of values. It should differ from K, so that confusing the two shows. Defaults to 24.
      kinds: which kinds to compare. Defaults to all.

    Returns:
      {kind: {comparison: difference}}; None if the mechanism has no such form.
    """
    mechanism = mechanism.with_length(T)
    with jax.enable_x64(True):
        inputs = draw(mechanism, T, K, V)
        compare = {"causal": _causal, "extend": _extend, "padding": _padding, "vmap/jit": _vmap_and_jit}
        return {kind: dict(compare[kind](mechanism, inputs)) for kind in kinds}


def attending(mechanism: Mechanism, mask: Mask = Full()) -> Callable:
    """Returns a function (q, k, v, extra) -> y that calls `attend` with a mask."""
    return lambda q, k, v, extra: mechanism.attend(q, k, v, mask, **extra)


def scanning(mechanism: Mechanism, block: int | None = None) -> Callable:
    """Returns a function (q, k, v, extra, keep=None) -> y that calls `causal` with a block size.

    The function raises NotImplementedError if the mechanism has no causal form.
    """

    def run(q, k, v, extra, keep=None):
        if not mechanism.traits.decodes:
            raise NotImplementedError(f"{mechanism} has no causal form")
        return causal(mechanism, q, k, v, block=block, keep=keep, **extra)

    return run


def answer(run: Callable, *arguments: PyTree) -> np.ndarray | None:
    """Returns the result of a call as a numpy array, or None if the mechanism does not support it.

    A NotImplementedError of jax itself is raised again.
    """
    try:
        return np.asarray(run(*arguments))
    except NotImplementedError as error:
        if _by_jax(error):
            raise
        return None


def difference(a: np.ndarray | None, b: np.ndarray | None) -> float | None:
    """Returns max |a − b|; NaN if either contains NaN, None if either is None.

    Raises:
      ValueError: if the shapes differ.
    """
    if a is None or b is None:
        return None
    if a.shape != b.shape:
        raise ValueError(f"the forms return different shapes, {a.shape} and {b.shape}")
    return float(np.max(np.abs(a - b), initial=0.0))


def _by_jax(error: NotImplementedError) -> bool:
    """Returns whether jax raised the error.

    An operation that jax lacks is a fault. A form that a mechanism lacks is not.
    """
    trace = error.__traceback__
    while trace and trace.tb_next:
        trace = trace.tb_next
    return trace is not None and trace.tb_frame.f_globals.get("__name__", "").split(".")[0] in ("jax", "jaxlib")


def _causal(mechanism: Mechanism, inputs: Inputs) -> Pairs:
    """Compares `attend` and several block sizes with one token at a time."""
    T = inputs[0].shape[0]
    forms = {"attend": attending(mechanism, Causal())}
    forms |= {f"block {block}": scanning(mechanism, block) for block in (None, 7, 64, T)}
    for length, names in ((T, list(forms)), (1, ["attend", "block None", "block 7"])):
        given = rows(mechanism, inputs, slice(0, length))
        steps = answer(jax.jit(scanning(mechanism, 1)), *given)
        for name in names:
            yield name + ("" if length == T else ", T=1"), difference(answer(jax.jit(forms[name]), *given), steps)


def _extend(mechanism: Mechanism, inputs: Inputs) -> Pairs:
    """Compares a sequence in uneven parts with the whole."""
    T = inputs[0].shape[0]
    whole = answer(jax.jit(scanning(mechanism)), *inputs)
    cuts = sorted({0, 1, T // 3, T})
    yield f"in {len(cuts) - 1} parts", difference(None if whole is None else _in_parts(mechanism, inputs, cuts), whole)


def _in_parts(mechanism: Mechanism, inputs: Inputs, cuts: list[int]) -> np.ndarray:
    """Returns the outputs for a sequence given part by part, with the state passed on."""
    extend = jax.jit(lambda state, q, k, v, extra: mechanism.extend(state, q, k, v, **extra))
    state, parts = mechanism.start(cuts[-1], inputs[1].shape[1], inputs[2].shape[1]), []
    for a, b in pairwise(cuts):
        y, state = extend(state, *rows(mechanism, inputs, slice(a, b)))
        parts.append(y)
    return np.concatenate(parts)


def _padding(mechanism: Mechanism, inputs: Inputs) -> Pairs:
    """Compares padded sequences with the shorter sequences of the kept tokens."""
    # Each pattern keeps the same number of tokens. The shorter sequences thus have one shape and compile once.
    T, at_end = inputs[0].shape[0], np.arange(inputs[0].shape[0]) < inputs[0].shape[0] - inputs[0].shape[0] // 4
    keeps = {"before": at_end[::-1], "between": np.random.default_rng(T).permutation(at_end)}
    attend = jax.jit(
        lambda q, k, v, extra, keep: mechanism.attend(q, k, v, KeyPadding(keep) & QueryPadding(keep), **extra)
    )
    # `attend` numbers keys including padding, so only padding at the end keeps the positions of the others.
    yield "attend, after", _padded(mechanism, inputs, at_end, attend, jax.jit(attending(mechanism)))
    alone = jax.jit(scanning(mechanism))
    for block in (None, 7):
        padded = jax.jit(scanning(mechanism, block))
        for where, keep in keeps.items():
            yield f"block {block}, {where}", _padded(mechanism, inputs, keep, padded, alone)


def _padded(mechanism: Mechanism, inputs: Inputs, keep: np.ndarray, padded: Callable, alone: Callable) -> float | None:
    """Returns the difference between the kept rows of a padded sequence and the sequence without padding."""
    short = answer(alone, *rows(mechanism, inputs, keep))
    y = answer(padded, *fill_padding_with_nan(mechanism, inputs, keep), keep)
    return difference(None if y is None else y[keep], short)


def _vmap_and_jit(mechanism: Mechanism, inputs: Inputs) -> Pairs:
    """Compares `jax.vmap` over two examples with a loop, and eager execution with `jit`."""
    T, K, V = min(inputs[0].shape[0], 13), inputs[1].shape[1], inputs[2].shape[1]
    first, second = (draw(mechanism, T, K, V, seed=seed) for seed in (1, 2))
    both = jax.tree.map(lambda *x: np.stack(x), first, second)
    for name, run in {"attend": attending(mechanism), "causal": scanning(mechanism)}.items():
        one, other = (answer(jax.jit(run), *given) for given in (first, second))
        loop = None if one is None or other is None else np.stack([one, other])
        yield f"{name}, vmap", difference(answer(jax.jit(jax.vmap(run)), *both), loop)
        yield f"{name}, eager", difference(answer(run, *jax.tree.map(jnp.asarray, first)), one)
