"""A whole sequence, causally, in blocks of any size: the form that all others must agree with."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, Shaped

from attnlab.mechanisms.base import Mechanism
from attnlab.mechanisms.inputs import arrays, split
from attnlab.mechanisms.position_state import initial_block
from attnlab.ops.chunks import split_chunks
from attnlab.ops.counts import check_counts
from attnlab.ops.mask import Places


def causal(
    mechanism: Mechanism,
    q: Shaped[Places, "T K"],
    k: Shaped[Places, "T K"],
    v: Shaped[Places, "T V"],
    *,
    block: int | None = None,
    keep: Shaped[Places, " T"] | None = None,
    i: Int[Places, " T"] | None = None,
    segment: Int[Places, " T"] | None = None,
    bias: Any = None,
    **extra: Array,
) -> Float[Array, "T V"]:
    """A whole sequence, causally: `extend` scanned over blocks of `block` tokens, for any T and block.

    None takes the mechanism's fastest block. All blocks give the same result. The other arguments are those of
    `Mechanism.extend`; raises what it raises, and ValueError for a block below 1.
    """
    T = len(q)
    if T == 0:
        return jnp.zeros_like(v)
    if block is None:
        return mechanism.causal(q, k, v, i=i, keep=keep, segment=segment, bias=bias, **extra)
    check_counts(block=block)
    q, k, v, keep, segment, extra = mechanism.given(q, k, v, i, keep, segment, bias, extra)
    mechanism.check(initial_block(T, i, keep, segment))
    state = mechanism.init_state(T, q.shape[1], v.shape[1], v.dtype)
    tokens, rest = split(extra, mechanism.tokens)
    keep = jnp.ones(T, bool) if keep is None else keep
    (i,) = arrays(i)
    columns = {"q": q, "k": k, "v": v, "keep": keep, "i": i, "segment": segment, **tokens}
    columns = {name: split_chunks(x, block) for name, x in columns.items() if x is not None}

    def advance(state, columns):
        y, state = mechanism.extend(state, **columns, bias=bias, **rest)
        return state, y

    _, y = jax.lax.scan(advance, state, columns)
    return y.reshape(-1, v.shape[1])[:T]
