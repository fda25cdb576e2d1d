"""The mechanism: how values are mixed. The one contract behind which every attention stands.

A mechanism writes one of three things, and the base does the rest (positions, padding, defaults, refusals):

- *pairwise*: `weights(q, k, allowed, ...) -> [T S]`. `attend`, cached `extend` and the map follow.
- *stateful*: `init_memory(length, K, V, dtype)` and `update(memory, q, k, v, block, ...)`: reads the past only. (Or its
  own `init_state` and `extend`, doing by itself what the base does for those.)
- *whole*: `attend_all(q, k, v, mask, ...)` alone: does not decode.
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
    """What is remembered: the `PositionState`, and the mechanism's own memory (a cache of keys and values, a matrix).

    Or, as any pytree, which axes of those are of what (`Mechanism.query_head_axes`).
    """

    clock: Any
    memory: Any


@dataclass(frozen=True)
class Mechanism:
    """How T queries mix S values: y [T V] from q [T K], k [S K], v [S V]; one example, one head.

    Frozen, hashable, without arrays. `tokens` names extra inputs per key token with their shape after [S]; `learned`
    names learned arrays, one set a head, with their shapes ("K" and "V" stand for the widths). `turns` says whether
    rotary positions keep their meaning in it, `biases` whether it adds a bias to scores, `rowwise` whether a query's
    answer depends on no other query, `placed` of one that `follows` edges whether weights tell where tokens stand,
    whatever q and k hold, `block` how many tokens of a whole sequence a stateful one takes at a time (None: all),
    `unsteady` why a rounding of its inputs may move its answers by more the longer the sequence, where it may. Every
    mechanism is linear in v.
    """

    turns = False
    biases = False
    rowwise = True
    placed = False
    block = None
    unsteady = ""

    def __str__(self):
        """As it is constructed, with functions by their names."""
        held = [(field.name, getattr(self, field.name)) for field in fields(self)]
        told = ", ".join(f"{name}={getattr(x, '__name__', x)}" for name, x in held)
        return f"{type(self).__name__}({told})"

    @property
    def tokens(self) -> dict[str, tuple]:
        """Extra inputs a key token."""
        return {}

    @property
    def learned(self) -> dict[str, tuple]:
        """Learned arrays, one set a head."""
        return {}

    # What a mechanism may write.

    def weights(self, q, k, allowed: Bool[Array, "T S"], *, i, j, bias=None, **extra) -> Float[Array, "T S"]:
        """Pairwise: the weight of every allowed pair, zero for the others."""
        raise NotImplementedError

    def edge_weights(self, q, k, ends: edges.EdgeIndex, *, i, j, bias=None, **extra) -> Float[Array, " E"]:
        """Pairwise: the weight of every edge, as `weights` gives it to that pair, zero for padding; O(E) in memory."""
        raise NotImplementedError

    def init_memory(self, length: int, K: int, V: int, dtype) -> Any:
        """Stateful: what is remembered before the first token: an empty sum [K V], or for pairwise ones all tokens.

        Sums are kept in float32 at least: bfloat16 loses most of a long sequence.
        """
        if self.remembers:
            return jnp.zeros((K, V), accumulation_dtype(dtype))
        shapes = {name: shape_of(shape, K, V) for name, shape in self.tokens.items()}
        return Cache.start(length, K, V, dtype, shapes)

    def update(self, memory: Any, q, k, v, block: TokenBlock, *, bias=None, **extra) -> tuple[Float[Array, "T V"], Any]:
        """Stateful: a block of new tokens, given what is remembered."""
        if not self.pairwise:
            raise NotImplementedError(f"{self} has no causal form: it cannot decode")
        tokens, rest = split(extra, self.tokens)
        cache, room, visible = memory.write(k, v, tokens, block)
        weights = self.weights(q, cache.k, visible, i=block.i, j=cache.i, bias=bias, **cache.tokens, **rest)
        y = weighted_sum(weights, cache.v).astype(v.dtype)
        # A write past the end cannot raise inside a trace; its output is made unusable instead.
        return jnp.where(room[:, None], y, jnp.nan), cache

    def attend_all(self, q, k, v, mask: Mask, *, i, j, bias=None, **extra) -> Float[Array, "T V"]:
        """Whole: every query against every key that the mask allows.

        Positions that follow from the shapes come as numpy's arrays: they are known while tracing.
        """
        if self.pairwise:
            return weighted_sum(self.weights(q, k, dense_mask(mask, i, j), i=i, j=j, bias=bias, **extra), v)
        if type(mask) is Causal and isinstance(i, np.ndarray) and isinstance(j, np.ndarray) and i.shape == j.shape:
            return self.attend_causal(q, k, v, initial_block(q.shape[0], None, None, None), bias=bias, **extra)
        raise NotImplementedError(f"{self} reads the past only: it cannot attend under {mask}")

    def attend_causal(self, q, k, v, block: TokenBlock, *, bias=None, **extra) -> Float[Array, "T V"]:
        """A whole sequence from its beginning, in the mechanism's fastest causal form."""
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

        # A gradient keeps of each block no more than what was remembered before it.
        @partial(jax.checkpoint, prevent_cse=False)
        def advance(memory, here):
            columns, block = here
            y, memory = self.update(memory, block=block, bias=bias, **columns, **rest)
            return memory, y

        _, y = jax.lax.scan(advance, memory, (columns, block.cut(size)))
        return y.reshape(-1, v.shape[1])[:T]

    def with_rotary(self, position: Any) -> Mechanism | None:
        """Of one that does not turn: the same with its features turned by their places, and not q and k.

        `position.turn(q, k, i, j)` turns components in groups of `position.rotates`. None: it has no features, or such
        as tell places by themselves.
        """
        return None

    def sized(self, length: int) -> Mechanism:
        """The same for sequences of up to `length`: itself, unless it is bound to a length."""
        return self

    def fit(self, length: int) -> None:
        """Raise ValueError where it is bound to fewer than `length` positions, unless it leaves that to `check`.

        As softmax and local-p do of a score that is bound: a cache may be longer than the positions that are used.
        """

    def check(self, block: TokenBlock) -> None:
        """Raise ValueError where tokens are known to stand beyond the positions that it is bound to."""

    def sees_all(self, length: int) -> bool:
        """Whether the first of `length` tokens sees all of them, under a full mask, whatever they hold."""
        return True

    def initial(self, key: Array, K: int, V: int) -> dict[str, Array]:
        """Where the learned arrays start."""
        return {}

    def heads(self, H: int) -> dict[str, Float[Array, " H"]]:
        """What differs by head and is not learned, one number a head.

        A call takes the number of its head: no default, which every head of a `jax.vmap` would share.
        """
        return {}

    def cost(self, T: int, S: int, K: int, V: int, block: int | None = None) -> Cost:
        """FLOPs and bytes of T queries against S keys (or of a causal pass by blocks), and bytes of state, float32."""
        raise NotImplementedError

    # What the base makes of it.

    @property
    def pairwise(self) -> bool:
        """Whether it writes weights for pairs."""
        return type(self).weights is not Mechanism.weights

    @property
    def follows(self) -> bool:
        """Whether it weighs the edges of a list alone; others weigh all pairs, and choose."""
        # Who weighs pairs anew without saying so of edges inherits a form that is no longer its own.
        owner = lambda name: next(kind for kind in type(self).__mro__ if name in vars(kind))
        return (
            self.pairwise
            and issubclass(owner("edge_weights"), owner("weights"))
            and owner("edge_weights") is not Mechanism
        )

    @property
    def remembers(self) -> bool:
        """Whether it has a state of its own, other than a cache of all keys and values."""
        return type(self).update is not Mechanism.update

    @property
    def attends(self) -> bool:
        """Whether it can attend under masks other than `Causal()`: in an encoder, to a memory."""
        kind = type(self)
        return self.pairwise or kind.attend_all is not Mechanism.attend_all or kind.attend is not Mechanism.attend

    @property
    def query_head_axes(self) -> Any:
        """What of its state belongs to a query head alone, as axes of `jax.vmap`; None: all is of keys and values.

        Query heads that share keys and values share the rest of the state too.
        """
        return None

    @property
    def stateful(self) -> bool:
        """Whether it decodes: token after token."""
        kind = type(self)
        return self.pairwise or self.remembers or kind.extend is not Mechanism.extend

    def attend(self, q, k, v, mask: Mask = Full(), *, i=None, j=None, bias=None, **extra) -> Float[Array, "T V"]:
        """Any queries against any keys: encoder, cross, graph.

        q [T K], k [S K], v [S V] -> y [T V]. Keys stand at j = 0…S−1 and queries at i = S−T…S−1, ends aligned,
        unless given. A query that sees no key answers zero. What no query sees reaches neither the result nor a
        gradient. `bias` is a function `bias(q, i, j) -> [T S]` of queries and positions, added to scores; what it holds
        that is traced must be leaves of a pytree (as of `jax.tree_util.Partial`). Under an `EdgeList` one that
        `follows` edges weighs these alone, where positions are known.

        Raises ValueError where shapes do not fit, or the mask looks up rows, T ≠ S, and `i` is missing;
        NotImplementedError for a bias or a mask that this mechanism cannot honour; TypeError for what is no mask, no
        bias, or no extra of its own.
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
        """What a module keeps of a call, to be looked at: nothing, unless the mechanism is `Watched`."""
        return None

    def start(self, length: int, K: int, V: int, dtype=None) -> Any:
        """The state before the first token. `length` is the room of a cache, and changes no result.

        Raises ValueError as `fit` does.
        """
        self.fit(length)
        return self.init_state(length, K, V, dtype)

    def init_state(self, rows: int, K: int, V: int, dtype=None) -> Any:
        """The same with room for so many rows, wherever they stand: padding takes no position, segments count anew."""
        return State(
            PositionState.start(), self.init_memory(rows, K, V, jnp.result_type(float) if dtype is None else dtype)
        )

    def extend(self, state: State, q, k, v, *, i=None, keep=None, segment=None, bias=None, **extra):
        """T new tokens, given what is remembered: q [T K], k [T K], v [T V] -> (y [T V], state).

        `keep [T]` False is padding: no write, no decay, a zero row. A change of `segment [T]` forgets all before it.
        `i [T]` gives positions, which otherwise count on. Raises ValueError where a cache is known to be full; inside
        a trace such an output is NaN and no slot is touched.
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
        """`extend` of a whole sequence from its beginning, without the state: the fastest causal form.

        Positions that follow from the shapes, or are given as numpy's, reach `attend_causal` as numpy's: they are known
        while tracing.
        """
        q, k, v, keep, segment, extra = self.given(q, k, v, i, keep, segment, bias, extra)
        if not q.shape[0]:
            return v
        if type(self).extend is not Mechanism.extend:  # a mechanism that writes its own
            state = self.init_state(q.shape[0], q.shape[1], v.shape[1], v.dtype)
            return self.extend(state, q, k, v, i=i, keep=keep, segment=segment, bias=bias, **extra)[0]
        block = initial_block(q.shape[0], i, keep, segment)
        q, k, v, extra = self._kept(keep, q, k, v, extra)
        y = self.attend_causal(q, k, v, block, bias=bias, **extra)
        return zero_where_padded(keep, y)

    def given(self, q, k, v, i, keep, segment, bias, extra: dict) -> tuple:
        """T new tokens as arrays, (q, k, v, keep, segment, extra), checked as `extend` promises; i is checked alone."""
        check_bias(self, bias)
        extra = self._complete(extra, bias)
        (q, k, v), (keep, segment) = floats(q, k, v), arrays(keep, segment)
        check_shapes(self, q, k, v, extra, new=True)
        check_rows(self, q.shape[0], i=i, keep=keep, segment=segment)
        return q, k, v, None if keep is None else keep.astype(bool), segment, extra

    def _kept(self, keep, q, k, v, extra):
        """The selection of padding, written once, before any product: 0·NaN in a backward pass is NaN."""
        chosen = {
            name: zero_where_padded(keep, value) if name in self.tokens else value for name, value in extra.items()
        }
        return zero_where_padded(keep, q), zero_where_padded(keep, k), zero_where_padded(keep, v), chosen

    def _complete(self, extra: dict, bias) -> dict:
        """The extras as arrays, checked by name."""
        if bias is not None and not self.biases:
            raise NotImplementedError(f"{self} cannot honour a bias: {bias}")
        check_names(self, extra)
        return {name: jnp.asarray(value) for name, value in extra.items()}
