"""Attention of whole sequences."""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from operator import and_

import jax.numpy as jnp
import numpy as np
from jax.tree_util import Partial
from jax.typing import ArrayLike, DTypeLike
from jaxtyping import Array, Float, Int

from attnlab.functional.operands import Operands, resolve
from attnlab.mechanisms import Mechanism
from attnlab.mechanisms.position_state import initial_block
from attnlab.ops.learned_score import Bias
from attnlab.ops.mask import ArrayOrNumpy, Causal, Edges, Full, KeyPadding, Mask, QueryPadding, Segments
from attnlab.ops.mask.base import not_a_mask
from attnlab.ops.tree import pytree, static


def attention(
    q: Float[ArrayLike, "*B T H K"],
    k: Float[ArrayLike, "*B S G K"],
    v: Float[ArrayLike, "*B S G V"],
    mechanism: str | Mechanism = "softmax",
    *,
    mask: Mask | ArrayLike | None = None,
    causal: bool = False,
    bias: Bias | ArrayLike | None = None,
    keep: ArrayLike | None = None,
    query_keep: ArrayLike | None = None,
    segment_ids: ArrayLike | tuple[ArrayLike, ArrayLike] | None = None,
    **extra: ArrayLike,
) -> Float[Array, "*B T H V"]:
    """Mixes values with any attention mechanism, for a batch of examples and all heads.

    q, k and v are laid out as in `jax.nn.dot_product_attention`. If there are fewer key heads than query heads, each
    key head serves H/G successive query heads. Softmax returns what `jax.nn.dot_product_attention` does, with two
    exceptions. A query that sees no key returns zero. If T ≠ S, `causal` aligns the last query with the last key, as
    everywhere in attnlab; `mask=jnp.tril(jnp.ones((T, S), bool))` aligns the first ones.

    Args:
        q: queries [B T H K], or [T H K] for one example.
        k: keys [B S G K], or [S G K].
        v: values [B S G V], or [S G V].
        mechanism: name in `attnlab.MECHANISMS`, or a mechanism.
        mask: which query may see which key. A boolean array [T S], [B T S] or [B H T S], where B and H may be 1 (for
            one example [T S] or [H T S]), or a mask of `attnlab.ops.mask` for all examples and heads.
        causal: whether a query sees no later key. With T = S and no `mask`, the mechanism's fastest causal form runs.
        bias: numbers that are added to the scores, with the shapes of a boolean mask, or a function `bias(q, i, j)`.
        keep: False for keys that are padding [B S]. If `causal`, the queries are the last T of these tokens, and
            padded ones return zero.
        query_keep: False for queries that are padding [B T], which return zero.
        segment_ids: segment ids of packed tokens [B T], or a pair of those of queries [B T] and of keys [B S]. A query
            sees the keys of its own segment. If `causal`, an array differs from a pair: as in `decode_step`, every
            change of the id begins a new segment, and an id that returns does not continue its earlier segment.
        **extra: the mechanism's extra inputs by name: `tokens` [B S G …], `queries` [B T H …] and `learned` arrays
            [G …] or [H …]. Constants of heads are those of `mechanism.heads(G)` by default.

    Returns:
        Output [B T H V], or [T H V] for one example.

    Raises:
        ValueError: if shapes do not fit, if the name is unknown, or if padded queries would change other outputs.
        TypeError: if an extra input is missing or unknown, an array does not hold floats, segment ids are no
            integers, or a mask has the wrong type.
        NotImplementedError: if the mechanism does not support the mask, the bias or causal attention.
    """
    mechanism = resolve(mechanism)
    if "is_causal" in extra:
        raise TypeError("is_causal is not known; use causal=True")
    if not isinstance(causal, bool | np.bool_):
        raise TypeError(f"causal must be True or False, got {type(causal).__name__}; pass an array as mask=")
    call = Operands(mechanism, q, k, v, extra)
    if not causal and not mechanism.traits.non_causal:
        raise NotImplementedError(f"{mechanism} only attends causally; pass causal=True")
    T, S, shared = call.T, call.S, mask if isinstance(mask, Mask) else None
    if shared is not None and shared.indexed and T != S:
        raise ValueError(f"mask={shared} looks up rows, but T={T} and S={S}: pass a boolean array, keep or query_keep")
    if causal and not mechanism.traits.non_causal and T != S:
        hint = "to continue a sequence, use init_cache and decode_step"
        raise NotImplementedError(f"{mechanism} attends causally among its own tokens, got T={T} and S={S}; {hint}")
    if keep is not None and query_keep is None and not causal and not mechanism.traits.row_independent:
        raise ValueError(f"{mechanism} mixes queries: pass query_keep with keep, for self-attention query_keep=keep")
    paired = isinstance(segment_ids, tuple)
    if paired and len(segment_ids) != 2:
        raise ValueError(f"segment_ids must be an array or a pair of arrays, got a tuple of {len(segment_ids)}")
    # Queries and keys of the same tokens have a causal form of their own.
    whole = causal and T == S and mask is None and query_keep is None and not paired
    if causal and keep is not None and query_keep is None and T <= S:
        query_keep = jnp.asarray(keep)[..., S - T :]
    call.add_rows("keep", keep, S)
    call.add_rows("query_keep", query_keep, T)
    if paired:
        call.add_segments("query_segment", segment_ids[0], T, "segment_ids[0]")
        call.add_segments("key_segment", segment_ids[1], S, "segment_ids[1]")
    else:
        call.add_segments("query_segment", segment_ids, T)
        call.add_segments("key_segment", segment_ids, S)
    if isinstance(mask, type):
        raise TypeError(not_a_mask(mask))
    if not (mask is None or isinstance(mask, Mask)):
        call.add_pairs("mask", _array("mask", mask, jnp.bool_, "a boolean array or a mask; add scores as bias"))
    if bias is not None and not mechanism.traits.bias:
        raise NotImplementedError(f"{mechanism} does not support a bias")
    if bias is not None and not callable(bias):
        call.add_pairs("bias", _array("bias", bias, jnp.floating, "an array of floats or a function bias(q, i, j)"))

    def head(x: dict[str, Array], _: None) -> tuple[Array, None]:
        q, k, v, rest = x["q"], x["k"], x["v"], {name: x[name] for name in call.extra}
        added = Partial(_bias_of_rows, x["bias"]) if "bias" in x else bias
        if whole:
            # By default, positions skip padding and begin anew in each segment. The rows of an array do not.
            i = np.arange(T, dtype=np.int32) if "bias" in x else None
            given = {"i": i, "keep": x.get("keep"), "segment": x.get("key_segment"), "bias": added}
            return mechanism.causal(q, k, v, **given, **rest), None
        by_row = lambda mask: mask if T == S else ByRow(mask, S - T)
        rules = ([Causal()] if causal else []) + ([] if shared is None else [shared])
        rules += [by_row(Edges(x["mask"]))] if "mask" in x else []
        if "key_segment" in x:
            queries, keys = x["query_segment"], x["key_segment"]
            if causal and not paired:
                queries = keys = initial_block(T, None, x.get("keep"), keys).run
            rules += [by_row(Segments(queries, keys))]
        rules += [KeyPadding(x["keep"])] if "keep" in x else []
        rules += [by_row(QueryPadding(x["query_keep"]))] if "query_keep" in x else []
        return mechanism.attend(q, k, v, reduce(and_, rules) if rules else Full(), bias=added, **rest), None

    return call.run(head)[0]


@pytree
@dataclass(frozen=True, eq=False)
class ByRow(Mask):
    """A mask that looks up queries by their row, 0 … T−1, instead of by their position."""

    mask: Mask
    """The mask by rows."""
    first: int = static()
    """Position of the first query."""

    def __call__(self, i: Int[ArrayOrNumpy, " T"], j: Int[ArrayOrNumpy, " S"]):
        """Evaluates the mask at the rows of the queries."""
        return self.mask(i - self.first, j)

    def factors(self, i: Int[ArrayOrNumpy, " T"], j: Int[ArrayOrNumpy, " S"]):
        """Returns the factors at the rows of the queries."""
        return self.mask.factors(i - self.first, j)


def _array(name: str, x: ArrayLike, kind: DTypeLike, expected: str) -> Array:
    """Returns x as an array, after a check of its dtype."""
    try:
        array = jnp.asarray(x)
    except TypeError:
        raise TypeError(f"{name} must be {expected}, got {x!r}") from None
    if not jnp.issubdtype(array.dtype, kind):
        raise TypeError(f"{name} must be {expected}, got an array of {array.dtype}")
    return array


def _bias_of_rows(pairs: Float[Array, "T S"], q: Array, i: ArrayOrNumpy, j: ArrayOrNumpy) -> Float[Array, "..."]:
    """Returns numbers per pair of a query's row and a key's column. The last row is that of the last key."""
    T, S = pairs.shape
    return pairs[(i - (S - T))[:, None], j[None, :]]
