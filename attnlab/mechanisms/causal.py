"""Causal attention over a whole sequence in blocks of any size: the reference for all other forms."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, Shaped

from attnlab.mechanisms.base import Mechanism, State
from attnlab.mechanisms.checked import CheckedMechanism, empty_state
from attnlab.mechanisms.inputs import arrays, prepare_new_tokens, split
from attnlab.mechanisms.position_state import initial_block
from attnlab.ops.counts import check_counts
from attnlab.ops.learned_score import Bias
from attnlab.ops.mask import ArrayOrNumpy
from attnlab.ops.split import split_chunks
from attnlab.ops.varying import varying_like


def causal(
    mechanism: Mechanism,
    q: Shaped[ArrayOrNumpy, "T K"],
    k: Shaped[ArrayOrNumpy, "T K"],
    v: Shaped[ArrayOrNumpy, "T V"],
    *,
    block: int | None = None,
    keep: Shaped[ArrayOrNumpy, " T"] | None = None,
    i: Int[ArrayOrNumpy, " T"] | None = None,
    segment: Int[ArrayOrNumpy, " T"] | None = None,
    bias: Bias | None = None,
    **extra: Array,
) -> Float[Array, "T V"]:
    """Attends causally over a whole sequence, by scanning `extend` over blocks.

    All block sizes give the same result, up to rounding. T need not be a multiple of `block`.

    Args:
        mechanism: the mechanism.
        q: queries [T K].
        k: keys [T K].
        v: values [T V].
        block: number of tokens per block. None uses the mechanism's fastest form.
        keep: False for padding [T]. Default: all True.
        i: positions [T]. Default: 0 … T−1, counted over kept tokens and from 0 in each segment.
        segment: segment ids [T]. A token does not see tokens of an earlier segment. Default: one segment.
        bias: function `bias(q, i, j)` that is added to scores, or None.
        **extra: extra inputs of the mechanism, by name.

    Returns:
        Output [T V].

    Raises:
        ValueError: if `block` is below 1, and as `Mechanism.extend`.
        NotImplementedError: as `Mechanism.extend`.
        TypeError: as `Mechanism.extend`.
    """
    T = len(q)
    if T == 0:
        return jnp.zeros_like(v)
    if block is None:
        return mechanism.causal(q, k, v, i=i, keep=keep, segment=segment, bias=bias, **extra)
    check_counts(block=block)
    q, k, v, keep, segment, extra = prepare_new_tokens(mechanism, q, k, v, i, keep, segment, bias, extra)
    state = _start(mechanism, T, q.shape[1], v.shape[1], v.dtype, i, keep, segment)
    tokens, rest = split(extra, {**mechanism.tokens, **mechanism.queries})
    keep = jnp.ones(T, bool) if keep is None else keep
    (i,) = arrays(i)
    columns = {"q": q, "k": k, "v": v, "keep": keep, "i": i, "segment": segment, **tokens}
    columns = {name: split_chunks(x, block) for name, x in columns.items() if x is not None}

    def advance(state, columns):
        y, state = mechanism.extend(state, **columns, bias=bias, **rest)
        return state, y

    _, y = jax.lax.scan(advance, varying_like(state, columns), columns)
    return y.reshape(-1, v.shape[1])[:T]


def _start(mechanism: Mechanism, T: int, K: int, V: int, dtype, i, keep, segment) -> State:
    """Returns the state before T tokens, after checking their positions. Padding does not count as a position."""
    if not isinstance(mechanism, CheckedMechanism):
        return mechanism.start(T, K, V, dtype)
    mechanism.check_positions(initial_block(T, i, keep, segment).positions)
    return empty_state(mechanism, T, K, V, dtype)
