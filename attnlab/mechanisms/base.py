"""The contract that every attention mechanism implements.

A mechanism implements one of three forms, and the base class derives the rest (positions, padding, defaults, errors):

- Pairwise: `weights(q, k, allowed, ...) -> [T S]`. `attend`, a cached `extend` and the attention map follow from it.
- Stateful: `init_memory(length, K, V, dtype)` and `update(memory, q, k, v, block, ...)`. Such a mechanism reads only
  the past. It may instead override `init_state` and `extend`, and then handles positions and padding itself.
- Whole: only `attend_all(q, k, v, mask, ...)`. Such a mechanism cannot decode.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from attnlab.mechanisms.cache import Cache, caches
from attnlab.mechanisms.cost import Cost
from attnlab.mechanisms.inputs import (
    arrays,
    check_bias,
    check_kinds,
    check_names,
    check_rows,
    check_shapes,
    floats,
    shape_of,
    split,
    zero_where_padded,
)
from attnlab.mechanisms.position_state import PositionState, TokenBlock, dense_mask, initial_block, next_block
from attnlab.ops import edges
from attnlab.ops.chunks import split_chunks
from attnlab.ops.mask import Causal, EdgeList, Full, Mask
from attnlab.ops.precision import accumulation_dtype, weighted_sum
from attnlab.ops.tree import pytree


@pytree
@dataclass(frozen=True)
class State:
    """Decoding state of a mechanism.

    Also used as a pytree of axes for `jax.vmap`, see `Mechanism.query_head_axes`.
    """

    clock: Any
    """The `PositionState`: position and segment of the next token."""
    memory: Any
    """The mechanism's own memory, for example a `Cache` of keys and values or a matrix."""


@dataclass(frozen=True)
class Mechanism:
    """Mixes S values for T queries, for one example and one head.

    y [T V] is computed from q [T K], k [S K] and v [S V]. Every mechanism is linear in v.

    Subclasses are frozen dataclasses: hashable and without arrays. The class attributes below describe what a mechanism
    supports, and subclasses override them.
    """

    turns = False
    """Whether rotary positions can be applied to q and k: products of rotated vectors still depend on distance."""
    biases = False
    """Whether a `bias` is added to the scores. If False, a bias raises NotImplementedError."""
    rowwise = True
    """Whether the output of a query is independent of all other queries."""
    placed = False
    """Whether weights depend on the positions of tokens, whatever q and k hold.

    Only read for a mechanism whose `follows` is True.
    """
    block = None
    """Number of tokens that a stateful mechanism processes at a time in a whole sequence. None: all at once."""
    unsteady = ""
    """Why rounding of the inputs may change the outputs more for longer sequences. Empty if it does not."""

    def __str__(self):
        """Returns the constructor call, with functions shown by name."""
        held = [(field.name, getattr(self, field.name)) for field in fields(self)]
        told = ", ".join(f"{name}={getattr(x, '__name__', x)}" for name, x in held)
        return f"{type(self).__name__}({told})"

    @property
    def tokens(self) -> dict[str, tuple]:
        """Extra inputs per key token, as name to shape.

        The array passed to a call has a leading axis [S] before this shape. "K" and "V" stand for the widths.
        """
        return {}

    @property
    def learned(self) -> dict[str, tuple]:
        """Learned arrays of one head, as name to shape. "K" and "V" stand for the widths."""
        return {}

    # Methods that a mechanism may implement.

    def weights(self, q, k, allowed: Bool[Array, "T S"], *, i, j, bias=None, **extra) -> Float[Array, "T S"]:
        """Returns the weight of every pair. Implemented by pairwise mechanisms.

        Args:
            q: queries [T K].
            k: keys [S K].
            allowed: the pairs that the mask allows [T S].
            i: positions of the queries [T].
            j: positions of the keys [S].
            bias: function `bias(q, i, j) -> [T S]` that is added to scores, or None.
            **extra: extra inputs, by the names in `tokens`, `learned` and `heads`.

        Returns:
            Weights [T S], zero for pairs that are not allowed.
        """
        raise NotImplementedError

    def edge_weights(self, q, k, ends: edges.EdgeIndex, *, i, j, bias=None, **extra) -> Float[Array, " E"]:
        """Returns the weight of every edge of a graph. Implemented by some pairwise mechanisms.

        The weight of an edge equals that of the same pair in `weights`. Memory is O(E). The arguments are those of
        `weights`, with `ends`, the indices of the edges, in place of `allowed`.

        Returns:
            Weights [E], zero for edges that are padding.
        """
        raise NotImplementedError

    def init_memory(self, length: int, K: int, V: int, dtype) -> Any:
        """Returns the memory before the first token.

        The default for stateful mechanisms is an empty sum [K V] in at least float32, because a sum in bfloat16 loses
        most of a long sequence. For pairwise mechanisms it is an empty `Cache` for `length` tokens, in `dtype`.
        """
        if self.remembers:
            return jnp.zeros((K, V), accumulation_dtype(dtype))
        shapes = {name: shape_of(shape, K, V) for name, shape in self.tokens.items()}
        return Cache.start(length, K, V, dtype, shapes)

    def update(self, memory: Any, q, k, v, block: TokenBlock, *, bias=None, **extra) -> tuple[Float[Array, "T V"], Any]:
        """Processes a block of new tokens. Implemented by stateful mechanisms.

        The default, for pairwise mechanisms, writes the block to the cache and attends to all cached keys.

        Args:
            memory: memory before the block, from `init_memory` or an earlier `update`.
            q: queries [T K].
            k: keys [T K].
            v: values [T V].
            block: positions, padding and segments of the T tokens.
            bias: function `bias(q, i, j)` that is added to scores, or None.
            **extra: extra inputs, by the names in `tokens`, `learned` and `heads`.

        Returns:
            The output [T V] and the memory after the block.
        """
        if not self.pairwise:
            raise NotImplementedError(f"{self} has no causal form: it cannot decode")
        tokens, rest = split(extra, self.tokens)
        cache, room, visible = memory.write(k, v, tokens, block)
        weights = self.weights(q, cache.k, visible, i=block.i, j=cache.i, bias=bias, **cache.tokens, **rest)
        y = weighted_sum(weights, cache.v).astype(v.dtype)
        # A write past the end cannot raise inside a trace. Its output becomes NaN instead.
        return jnp.where(room[:, None], y, jnp.nan), cache

    def attend_all(self, q, k, v, mask: Mask, *, i, j, bias=None, **extra) -> Float[Array, "T V"]:
        """Attends from every query to every key that the mask allows. Arguments are complete and checked.

        Positions that follow from the shapes are numpy arrays, so that they are known while tracing.

        Raises:
            NotImplementedError: for a stateful mechanism without this form, unless the mask is `Causal()`, positions
                are known while tracing, and there are as many queries as keys.
        """
        if self.pairwise:
            return weighted_sum(self.weights(q, k, dense_mask(mask, i, j), i=i, j=j, bias=bias, **extra), v)
        if type(mask) is Causal and isinstance(i, np.ndarray) and isinstance(j, np.ndarray) and i.shape == j.shape:
            return self.attend_causal(q, k, v, initial_block(q.shape[0], None, None, None), bias=bias, **extra)
        raise NotImplementedError(f"{self} reads the past only: it cannot attend under {mask}")

    def attend_causal(self, q, k, v, block: TokenBlock, *, bias=None, **extra) -> Float[Array, "T V"]:
        """Attends causally over a whole sequence, in the mechanism's fastest form.

        The default runs `update` over blocks of `self.block` tokens with `jax.lax.scan`. A pairwise mechanism computes
        all pairs at once.
        """
        self.check(block)
        if self.pairwise and not self.remembers:
            at = block.positions
            return weighted_sum(self.weights(q, k, block.pairs, i=at, j=at, bias=bias, **extra), v)
        T = q.shape[0]
        memory = self.init_memory(T, q.shape[1], v.shape[1], v.dtype)
        size = self.block or T
        if size >= T:
            return self.update(memory, q, k, v, block, bias=bias, **extra)[0]
        tokens, rest = split(extra, self.tokens)
        columns = jax.tree.map(lambda x: split_chunks(x, size), {"q": q, "k": k, "v": v, **tokens})

        # Without the checkpoint, a gradient would store the intermediates of all blocks, not only the memory before
        # each.
        @partial(jax.checkpoint, prevent_cse=False)
        def advance(memory, here):
            columns, block = here
            y, memory = self.update(memory, block=block, bias=bias, **columns, **rest)
            return memory, y

        _, y = jax.lax.scan(advance, memory, (columns, block.cut(size)))
        return y.reshape(-1, v.shape[1])[:T]

    def with_rotary(self, position: Any) -> Mechanism | None:
        """Returns a mechanism that applies rotary positions to its features, or None if it cannot.

        Used if `turns` is False, when rotating q and k would change what their products mean. The default returns None.
        None means that the mechanism has no features, or that its features encode positions already.

        Args:
            position: rotary encoding. `position.rotate(q, k, i, j)` rotates components in groups of `position.rotates`.
        """
        return None

    def sized(self, length: int) -> Mechanism:
        """Returns this mechanism for sequences of up to `length` tokens.

        Returns itself unless it has a maximum length, as one does with a learned array per position.
        """
        return self

    def fit(self, length: int) -> None:
        """Checks that this mechanism supports `length` positions.

        Softmax and local-p with a score that has a maximum length check the positions in `check` instead, because a
        cache may be longer than the positions that are used.

        Raises:
            ValueError: if the mechanism has a maximum length and `length` exceeds it.
        """

    def check(self, block: TokenBlock) -> None:
        """Checks that the positions of a block lie within the maximum length, if there is one.

        Raises:
            ValueError: if positions are known and one lies beyond. Traced positions are not checked.
        """

    def sees_all(self, length: int) -> bool:
        """Returns whether the first of `length` tokens sees all tokens under a full mask, whatever they hold."""
        return True

    def initial(self, key: Array, K: int, V: int) -> dict[str, Array]:
        """Returns initial values of the learned arrays of one head, by name.

        Args:
            key: random key.
            K: width of keys.
            V: width of values.
        """
        return {}

    def heads(self, H: int) -> dict[str, Float[Array, " H"]]:
        """Returns constants that differ by head and are not learned, by name, one number per head.

        A call takes the number of its own head. There is no default for it, because under `jax.vmap` every head would
        share that default.
        """
        return {}

    def cost(self, T: int, S: int, K: int, V: int, block: int | None = None) -> Cost:
        """Returns the floating-point operations, bytes moved and bytes of state, in float32.

        Args:
            T: number of queries.
            S: number of keys.
            K: width of keys.
            V: width of values.
            block: number of tokens processed at a time in a causal pass, or None for T queries against S keys at once.
        """
        raise NotImplementedError

    # What the base class derives from them.

    @property
    def pairwise(self) -> bool:
        """Whether this mechanism implements `weights`."""
        return type(self).weights is not Mechanism.weights

    @property
    def follows(self) -> bool:
        """Whether this mechanism computes weights only for the edges of an `EdgeList`.

        Other mechanisms compute all pairs and then mask them.
        """
        # A subclass that overrides `weights` but not `edge_weights` inherits an edge form that no longer matches its
        # weights. So the owner of `edge_weights` must be the owner of `weights`, or a subclass of it.
        owner = lambda name: next(kind for kind in type(self).__mro__ if name in vars(kind))
        return (
            self.pairwise
            and issubclass(owner("edge_weights"), owner("weights"))
            and owner("edge_weights") is not Mechanism
        )

    @property
    def remembers(self) -> bool:
        """Whether this mechanism has its own memory instead of a cache of all keys and values."""
        return type(self).update is not Mechanism.update

    @property
    def attends(self) -> bool:
        """Whether this mechanism supports masks other than `Causal()`, as encoders and cross-attention need."""
        kind = type(self)
        return self.pairwise or kind.attend_all is not Mechanism.attend_all or kind.attend is not Mechanism.attend

    @property
    def query_head_axes(self) -> Any:
        """Axes of `jax.vmap` for the parts of the state that belong to one query head, or None if there are none.

        Query heads that share keys and values also share the rest of the state.
        """
        return None

    @property
    def stateful(self) -> bool:
        """Whether this mechanism can decode token by token."""
        kind = type(self)
        return self.pairwise or self.remembers or kind.extend is not Mechanism.extend

    def attend(self, q, k, v, mask: Mask = Full(), *, i=None, j=None, bias=None, **extra) -> Float[Array, "T V"]:
        """Attends from any queries to any keys, as in encoders, cross-attention and graphs.

        A query that sees no key returns zero. Tokens that no query sees affect neither the result nor any gradient.

        Args:
            q: queries [T K]. Integers become the default float.
            k: keys [S K].
            v: values [S V].
            mask: which query may see which key. Default: all. Under an `EdgeList`, a mechanism whose `follows` is True
                computes only the edges, if positions are known while tracing.
            i: positions of the queries [T]. Default: S−T … S−1, so that the last query is aligned with the last key.
            j: positions of the keys [S]. Default: 0 … S−1.
            bias: function `bias(q, i, j) -> [T S]` of queries and positions that is added to scores. Traced values that
                it holds must be leaves of a pytree, for example of a `jax.tree_util.Partial`.
            **extra: extra inputs, by the names in `tokens`, `learned` and `heads`.

        Returns:
            Output [T V].

        Raises:
            ValueError: if shapes do not fit, or if the mask looks up rows by position, T ≠ S and `i` is missing.
            NotImplementedError: if this mechanism does not support the mask or the bias.
            TypeError: if an input is complex, `mask` is not a mask, `bias` is not a function, or an extra input is
                unknown or missing.
        """
        check_kinds(self, mask, bias)
        q, k, v = floats(q, k, v)
        extra = self._complete(extra, bias)
        check_shapes(self, q, k, v, extra)
        T, S = q.shape[0], k.shape[0]
        check_rows(self, T, i=i)
        check_rows(self, S, j=j)
        if i is None and mask.indexed and T != S:
            raise ValueError(f"{mask} looks rows up by position: with {T} queries and {S} keys, give i")
        if i is None and j is None:
            mask.fit(S, S)
        if not T:
            return v[:0]
        if isinstance(mask, EdgeList) and self.follows:
            at = [np.arange(n, dtype=np.int32) if given is None else given for n, given in ((T, i), (S, j))]
            if (ends := edges.from_edge_list(mask, *at)) is not None:
                rows, columns = ends.reachable()
                q, k = zero_where_padded(rows, q), zero_where_padded(columns, k)
                return edges.sum_values(self.edge_weights(q, k, ends, i=at[0], j=at[1], bias=bias, **extra), v, ends)
        j = np.arange(S, dtype=np.int32) if j is None else jnp.asarray(j, jnp.int32)
        i = np.arange(S - T, S, dtype=np.int32) if i is None else jnp.asarray(i, jnp.int32)
        if isinstance(mask, Full):
            return self.attend_all(q, k, v, mask, i=i, j=j, bias=bias, **extra)
        rows, columns = mask.reachable(i, j)
        q, k, v = zero_where_padded(rows, q), zero_where_padded(columns, k), zero_where_padded(columns, v)
        extra |= {name: zero_where_padded(columns, extra[name]) for name in self.tokens}
        return zero_where_padded(rows, self.attend_all(q, k, v, mask, i=i, j=j, bias=bias, **extra))

    def look(self, q, k, mask: Mask = Full(), *, i=None, j=None, bias=None, **extra) -> Any:
        """Returns what a module keeps of a call for inspection.

        The default is None. `Watched` returns the attention map.
        """
        return None

    def start(self, length: int, K: int, V: int, dtype=None) -> Any:
        """Returns the state before the first token.

        Args:
            length: number of tokens that a cache can hold. It does not change any result.
            K: width of keys.
            V: width of values.
            dtype: dtype of a cache. Sums have at least float32. Default: the default float.

        Raises:
            ValueError: if the mechanism supports fewer than `length` positions, see `fit`.
        """
        self.fit(length)
        return self.init_state(length, K, V, dtype)

    def init_state(self, rows: int, K: int, V: int, dtype=None) -> Any:
        """Returns the state before the first token, with space for `rows` tokens, without checking positions.

        The number of tokens may exceed the number of positions: padding takes no position, and each segment counts from
        0.
        """
        return State(
            PositionState.start(), self.init_memory(rows, K, V, jnp.result_type(float) if dtype is None else dtype)
        )

    def extend(self, state: State, q, k, v, *, i=None, keep=None, segment=None, bias=None, **extra):
        """Processes T new tokens after those in `state`.

        Args:
            state: state from `start` or an earlier `extend`.
            q: queries [T K].
            k: keys [T K].
            v: values [T V].
            i: positions [T]. Default: they continue from the state.
            keep: False for padding [T]. Padding is not written, causes no decay, and returns a row of zeros. Default:
                all True.
            segment: segment ids [T]. A token does not see tokens before the last change of segment. Default: the
                segment of the state.
            bias: function `bias(q, i, j)` that is added to scores, or None.
            **extra: extra inputs, by the names in `tokens`, `learned` and `heads`.

        Returns:
            Output [T V] and the new state.

        Raises:
            ValueError: if a cache is known to be full. Under tracing, the output of a token that does not fit is NaN,
                and the cache is not changed by it.
            NotImplementedError: if this mechanism does not support a bias, or cannot decode.
            TypeError: if an input is complex, `bias` is not a function, or an extra input is unknown or missing.
        """
        q, k, v, keep, segment, extra = self.given(q, k, v, i, keep, segment, bias, extra)
        if not q.shape[0]:
            return v, state
        (i,) = arrays(i)
        for cache in caches(state.memory):
            cache.check(q.shape[0] if keep is None else keep)
        block, clock = next_block(state.clock, q.shape[0], i, keep, segment)
        self.check(block)
        q, k, v, extra = self._kept(keep, q, k, v, extra)
        y, memory = self.update(state.memory, q, k, v, block, bias=bias, **extra)
        return zero_where_padded(keep, y), State(clock, memory)

    def causal(self, q, k, v, *, i=None, keep=None, segment=None, bias=None, **extra) -> Float[Array, "T V"]:
        """Attends causally over a whole sequence, in the mechanism's fastest form.

        The result equals that of `extend` from an empty state, without the new state. Positions that follow from the
        shapes, or are passed as numpy arrays, reach `attend_causal` as numpy arrays, so that they are known while
        tracing. Arguments and errors are those of `extend`.
        """
        q, k, v, keep, segment, extra = self.given(q, k, v, i, keep, segment, bias, extra)
        if not q.shape[0]:
            return v
        if type(self).extend is not Mechanism.extend:  # the mechanism overrides `extend`
            state = self.init_state(q.shape[0], q.shape[1], v.shape[1], v.dtype)
            return self.extend(state, q, k, v, i=i, keep=keep, segment=segment, bias=bias, **extra)[0]
        block = initial_block(q.shape[0], i, keep, segment)
        q, k, v, extra = self._kept(keep, q, k, v, extra)
        y = self.attend_causal(q, k, v, block, bias=bias, **extra)
        return zero_where_padded(keep, y)

    def given(self, q, k, v, i, keep, segment, bias, extra: dict) -> tuple:
        """Checks the inputs of T new tokens and converts them to arrays.

        Returns:
            The tuple (q, k, v, keep, segment, extra). `i` is checked but not converted or returned.

        Raises:
            ValueError: if shapes do not fit.
            NotImplementedError: if this mechanism does not support a bias.
            TypeError: if an input is complex, `bias` is not a function, or an extra input is unknown or missing.
        """
        check_bias(self, bias)
        extra = self._complete(extra, bias)
        (q, k, v), (keep, segment) = floats(q, k, v), arrays(keep, segment)
        check_shapes(self, q, k, v, extra, new=True)
        check_rows(self, q.shape[0], i=i, keep=keep, segment=segment)
        return q, k, v, None if keep is None else keep.astype(bool), segment, extra

    def _kept(self, keep, q, k, v, extra):
        """Sets padded rows of q, k, v and of the extra inputs per token to zero, before any product.

        Padding may hold NaN, and 0·NaN in a backward pass is NaN.
        """
        chosen = {
            name: zero_where_padded(keep, value) if name in self.tokens else value for name, value in extra.items()
        }
        return zero_where_padded(keep, q), zero_where_padded(keep, k), zero_where_padded(keep, v), chosen

    def _complete(self, extra: dict, bias) -> dict:
        """Checks the names of the extra inputs and the support of a bias. Returns the extra inputs as arrays."""
        if bias is not None and not self.biases:
            raise NotImplementedError(f"{self} cannot honour a bias: {bias}")
        check_names(self, extra)
        return {name: jnp.asarray(value) for name, value in extra.items()}
