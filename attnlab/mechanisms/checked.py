"""The part that all mechanisms share: arguments of a call are checked and completed, and padding becomes zero."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, PyTree

from attnlab.mechanisms.base import Mechanism, State
from attnlab.mechanisms.cache import caches
from attnlab.mechanisms.inputs import (
    arrays,
    check_kinds,
    check_rows,
    check_shapes,
    complete_extras,
    floats,
    prepare_new_tokens,
    zero_padding,
    zero_where_padded,
)
from attnlab.mechanisms.position_state import PositionState, initial_block, next_block
from attnlab.ops.mask import ArrayOrNumpy, Causal, EdgeList, Full, Mask
from attnlab.ops.token_block import TokenBlock


@dataclass(frozen=True)
class CheckedMechanism(Mechanism):
    """Implements the calls of a mechanism by four methods whose arguments are complete.

    `attend` calls `attend_all`, `causal` calls `attend_causal`, `start` calls `init_memory`, and `extend` calls
    `update`. In these methods inputs are arrays of floating-point numbers with fitting shapes, extra inputs are
    complete, and rows of padding are zero.
    """

    @abstractmethod
    def attend_all(self, q, k, v, mask: Mask, *, i, j, bias=None, **extra) -> Float[Array, "T V"]:
        """Attends from every query to every key that the mask allows.

        Positions that follow from the shapes are numpy arrays, so that they are known while tracing.

        Args:
            q: queries [T K].
            k: keys [S K].
            v: values [S V].
            mask: which query may see which key.
            i: positions of the queries [T].
            j: positions of the keys [S].
            bias: function `bias(q, i, j) -> [T S]` that is added to scores, or None.
            **extra: extra inputs, by name.

        Raises:
            NotImplementedError: if this mechanism does not support the mask.
        """

    @abstractmethod
    def attend_causal(self, q, k, v, block: TokenBlock, *, bias=None, **extra) -> Float[Array, "T V"]:
        """Attends causally over a whole sequence, given as one block from its beginning.

        Raises:
            NotImplementedError: if this mechanism cannot decode.
        """

    @abstractmethod
    def init_memory(self, length: int, K: int, V: int, dtype) -> PyTree:
        """Returns the memory before the first token, with space for `length` tokens.

        Raises:
            NotImplementedError: if this mechanism cannot decode.
        """

    @abstractmethod
    def update(
        self, memory: PyTree, q, k, v, block: TokenBlock, *, bias=None, **extra
    ) -> tuple[Float[Array, "T V"], PyTree]:
        """Processes a block of new tokens.

        Args:
            memory: memory before the block, from `init_memory` or an earlier `update`.
            q: queries [T K].
            k: keys [T K].
            v: values [T V].
            block: positions, padding and segments of the T tokens.
            bias: function `bias(q, i, j)` that is added to scores, or None.
            **extra: extra inputs, by name.

        Returns:
            The output [T V] and the memory after the block.

        Raises:
            NotImplementedError: if this mechanism cannot decode.
        """

    def check_positions(self, i: Int[ArrayOrNumpy, " T"]) -> None:
        """Checks that positions lie within the maximum length, if there is one.

        Raises:
            ValueError: if positions are known and one lies beyond. Traced positions are not checked.
        """
        return None

    def attend_edges(self, q, k, v, edges: EdgeList, *, i, j, bias=None, **extra) -> Float[Array, "T V"] | None:
        """Attends along the edges of a graph, or returns None if the edges are not known while tracing.

        Only called for mechanisms with the trait `edges`.
        """
        return None

    def with_length(self, length: int) -> CheckedMechanism:
        """See `Mechanism.with_length`."""
        return self

    def attend(self, q, k, v, mask: Mask = Full(), *, i=None, j=None, bias=None, **extra):
        """See `Mechanism.attend`."""
        check_kinds(self, mask, bias)
        q, k, v = floats(q, k, v)
        extra = complete_extras(self, extra, bias)
        check_shapes(self, q, k, v, extra)
        T, S = q.shape[0], k.shape[0]
        check_rows(self, T, i=i)
        check_rows(self, S, j=j)
        if i is None and mask.indexed and T != S:
            raise ValueError(f"{mask} needs the positions i of the queries, because there are {T} queries and {S} keys")
        if i is None and j is None:
            mask.check_shape(S, S)
        if not T:
            return v[:0]
        if isinstance(mask, EdgeList) and self.traits.edges:
            rows, columns = (np.arange(n, dtype=np.int32) if x is None else x for n, x in ((T, i), (S, j)))
            y = self.attend_edges(q, k, v, mask, i=rows, j=columns, bias=bias, **extra)
            if y is not None:
                return y
        i, j = _positions(i, S - T, S), _positions(j, 0, S)
        if isinstance(mask, Full):
            return self.attend_all(q, k, v, mask, i=i, j=j, bias=bias, **extra)
        rows, columns = mask.reachable(i, j)
        q, k, v, extra = zero_padding(self, rows, columns, q, k, v, extra)
        return zero_where_padded(rows, self.attend_all(q, k, v, mask, i=i, j=j, bias=bias, **extra))

    def start(self, length: int, K: int, V: int, dtype=None) -> State:
        """See `Mechanism.start`."""
        self.check_length(length)
        return empty_state(self, length, K, V, dtype)

    def extend(self, state: State, q, k, v, *, i=None, keep=None, segment=None, bias=None, **extra):
        """See `Mechanism.extend`."""
        q, k, v, keep, segment, extra = prepare_new_tokens(self, q, k, v, i, keep, segment, bias, extra)
        if not q.shape[0]:
            return v, state
        (i,) = arrays(i)
        for cache in caches(state.memory):
            cache.check(q.shape[0] if keep is None else keep)
        block, position_state = next_block(state.position_state, q.shape[0], i, keep, segment)
        self.check_positions(block.positions)
        q, k, v, extra = zero_padding(self, keep, keep, q, k, v, extra)
        y, memory = self.update(state.memory, q, k, v, block, bias=bias, **extra)
        return zero_where_padded(keep, y), State(position_state, memory)

    def causal(self, q, k, v, *, i=None, keep=None, segment=None, bias=None, **extra):
        """See `Mechanism.causal`.

        Positions that follow from the shapes, or are passed as numpy arrays, reach `attend_causal` as numpy arrays, so
        that they are known while tracing.
        """
        q, k, v, keep, segment, extra = prepare_new_tokens(self, q, k, v, i, keep, segment, bias, extra)
        if not q.shape[0]:
            return v
        block = initial_block(q.shape[0], i, keep, segment)
        self.check_positions(block.positions)
        q, k, v, extra = zero_padding(self, keep, keep, q, k, v, extra)
        return zero_where_padded(keep, self.attend_causal(q, k, v, block, bias=bias, **extra))


def _positions(given: Int[ArrayOrNumpy, " T"] | None, first: int, end: int) -> Int[ArrayOrNumpy, " T"]:
    """Returns positions as int32: as a numpy array, which is known while tracing, if they are first … end−1."""
    default = np.arange(first, end, dtype=np.int32)
    if given is None or (isinstance(given, np.ndarray) and np.array_equal(given, default)):
        return default
    return jnp.asarray(given, jnp.int32)


def causal_block(
    mechanism: Mechanism, mask: Mask, i: Int[ArrayOrNumpy, " T"], j: Int[ArrayOrNumpy, " S"]
) -> TokenBlock:
    """Returns the block of a whole sequence, for mechanisms that support no other mask than `Causal()`.

    Args:
        mechanism: the mechanism, for the message.
        mask: the mask of the call.
        i: positions of the queries [T], a numpy array if they are known while tracing.
        j: positions of the keys [S], likewise.

    Raises:
        NotImplementedError: if the mask is another one, if there are not as many queries as keys, or if positions are
            not known while tracing.
    """
    if type(mask) is Causal and isinstance(i, np.ndarray) and isinstance(j, np.ndarray) and i.shape == j.shape:
        return initial_block(len(i), None, None, None)
    raise NotImplementedError(f"{mechanism} supports only causal attention, got {mask}")


def empty_state(mechanism: CheckedMechanism, rows: int, K: int, V: int, dtype=None) -> State:
    """Returns the state before the first token, with space for `rows` tokens, without checking positions.

    The number of tokens may exceed the number of positions: padding takes no position, and each segment counts from 0.

    Args:
        mechanism: the mechanism.
        rows: number of tokens that a cache can hold.
        K: width of keys.
        V: width of values.
        dtype: dtype of a cache. Default: the default float.

    Raises:
        TypeError: if `dtype` is not a floating-point dtype. A cache of integers would round keys and values.
    """
    dtype = jnp.result_type(float) if dtype is None else dtype
    if not jnp.issubdtype(dtype, jnp.floating):
        raise TypeError(f"the dtype of a cache must be a floating-point dtype, got {jnp.dtype(dtype)}")
    return State(PositionState.start(), mechanism.init_memory(rows, K, V, dtype))
