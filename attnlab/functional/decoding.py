"""Decoding: attention from new tokens, given the state of earlier ones."""

from __future__ import annotations

from dataclasses import dataclass

import jax
import jax.numpy as jnp
from jax.typing import ArrayLike, DTypeLike
from jaxtyping import Array, Float, PyTree

from attnlab.functional.operands import Operands, Sizes, resolve
from attnlab.mechanisms import Mechanism
from attnlab.mechanisms.cache import caches
from attnlab.mechanisms.query_heads import query_head_axes
from attnlab.ops.counts import check_counts
from attnlab.ops.learned_score import Bias
from attnlab.ops.tree import pytree, static


@pytree
@dataclass(frozen=True)
class DecodingCache:
    """State of a mechanism between two calls of `decode_step`, for all examples and heads."""

    state: PyTree
    """The mechanism's state, with leading axes of examples and key heads."""
    mechanism: Mechanism = static()
    """The mechanism."""
    sizes: Sizes = static()
    """Sizes of the arrays that `decode_step` takes."""


def init_cache(
    mechanism: str | Mechanism,
    batch: int | None,
    length: int,
    heads: int,
    width: int,
    *,
    value_width: int | None = None,
    key_heads: int | None = None,
    dtype: DTypeLike | None = None,
) -> DecodingCache:
    """Creates the state before the first token, for `decode_step`: a KV cache, or a state of constant size.

    Args:
        mechanism: name in `attnlab.MECHANISMS`, or a mechanism.
        batch: number of examples B. None: one example, whose arrays have no such axis.
        length: number of tokens that a KV cache (of keys and values) can hold.
        heads: number of query heads H.
        width: width K of queries and keys.
        value_width: width V of values. Default: `width`.
        key_heads: number of key heads G. It divides H. Default: `heads`.
        dtype: dtype of a KV cache. Sums have at least float32. Default: the default float.

    Returns:
        The cache.

    Raises:
        ValueError: if the name is unknown, a size is below 1, `key_heads` does not divide `heads`, or `length` exceeds
            the mechanism's maximum length.
        TypeError: if `dtype` is not a floating-point dtype.
        NotImplementedError: if the mechanism cannot decode.
    """
    mechanism = resolve(mechanism)
    check_counts(batch=batch, length=length)
    value_width, key_heads = width if value_width is None else value_width, heads if key_heads is None else key_heads
    sizes = Sizes(batch, heads, key_heads, width, value_width)
    start = lambda: mechanism.start(length, width, value_width, dtype)
    if heads > key_heads:
        axes = query_head_axes(jax.eval_shape(start))
        start = jax.vmap(start, axis_size=heads // key_heads, out_axes=axes)
    for size in (key_heads, *sizes.lead):
        start = jax.vmap(start, axis_size=size)
    return DecodingCache(start(), mechanism, sizes)


def decode_step(
    cache: DecodingCache,
    q: Float[ArrayLike, "*B T H K"],
    k: Float[ArrayLike, "*B T G K"],
    v: Float[ArrayLike, "*B T G V"],
    *,
    bias: Bias | None = None,
    keep: ArrayLike | None = None,
    segment_ids: ArrayLike | None = None,
    **extra: ArrayLike,
) -> tuple[Float[Array, "*B T H V"], DecodingCache]:
    """Attends causally from new tokens, one or many, to themselves and to those in the cache.

    Steps of any size return what `attention(..., causal=True)` returns for the whole sequence, up to rounding.

    Args:
        cache: the result of `init_cache` or of an earlier step.
        q: queries [B T H K] of T new tokens, or [T H K] for one example.
        k: keys [B T G K], or [T G K].
        v: values [B T G V], or [T G V].
        bias: function `bias(q, i, j)` that is added to the scores.
        keep: False for padding [B T]. It is not written, and returns zero.
        segment_ids: segment ids [B T]. A token sees no token before the last change of segment.
        **extra: as for `attention`.

    Returns:
        Output [B T H V], and the new cache.

    Raises:
        ValueError: if shapes do not fit, or if a cache is known to be full. Under tracing, the output of a token that
            does not fit is NaN.
        TypeError: if an extra input is missing or unknown, or `bias` is not a function.
        NotImplementedError: if the mechanism does not support the bias.
    """
    call = Operands(cache.mechanism, q, k, v, extra)
    if call.sizes != cache.sizes or call.T != call.S:
        shapes = f"q {jnp.shape(q)}, k {jnp.shape(k)} and v {jnp.shape(v)}"
        raise ValueError(f"the cache is for T new tokens {cache.sizes}, got {shapes}")
    call.add_rows("keep", keep, call.T)
    call.add_segments("segment", segment_ids, call.T)
    # Check here: under the vmap over examples and heads, counts are traced.
    for each in caches(cache.state):
        each.check(call.arrays.get("keep", call.T))

    def head(x: dict[str, Array], state: PyTree) -> tuple[Array, PyTree]:
        return cache.mechanism.extend(state, bias=bias, **x)

    y, state = call.run(head, cache.state)
    return y, DecodingCache(state, cache.mechanism, cache.sizes)
