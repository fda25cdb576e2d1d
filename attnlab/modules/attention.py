"""Multi-head attention: projections around any mechanism."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from attnlab.mechanisms.base import Mechanism
from attnlab.mechanisms.cache import caches
from attnlab.mechanisms.causal import causal
from attnlab.mechanisms.inputs import shape_of, zero_where_padded
from attnlab.modules.dense import Dense, fold_key, fused_projection
from attnlab.modules.learned import extras, init_learned
from attnlab.modules.position import Position, PositionEncoding
from attnlab.ops.mask import Causal, Full, KeyPadding, Mask, Places, QueryPadding

NO_POSITION = Position()


class Attention(nnx.Module):
    """q = x W_q, k = m W_k, v = m W_v by heads, mixed by `mechanism`, joined and projected (Vaswani et al. 2017, 3.2).

    One example: x [T D]. Three ways to call it: `attend` (to a memory, or to x itself), `causal` (causally, a sequence
    from its beginning) and `extend` (causally, given a state). Each answers (y, what else it knows): a look at its
    map where the mechanism is watched, or the new state. Each takes the network's position, which layers share.

    `key_heads` fewer than heads share their keys, values, and all else that comes with these, among as many query
    heads each (Ainslie et al. 2023; one key head: Shazeer 2019); a state is remembered once a key head.

    Raises ValueError where heads do not divide the width, key heads not the heads, or a width is not the module's;
    NotImplementedError where the mechanism cannot honour the position.
    """

    def __init__(
        self,
        key: PRNGKeyArray,
        width: int,
        heads: int,
        mechanism: Mechanism,
        key_heads: int | None = None,
        dense: Callable[..., Dense] = Dense,
    ):
        key_heads = heads if key_heads is None else key_heads
        check_heads(width, heads, key_heads)
        if not isinstance(mechanism, Mechanism):
            raise TypeError(f"a mechanism is wanted, as MECHANISMS['softmax'], not {mechanism!r}")
        self.width, self.heads, self.key_heads, self.mechanism = width, heads, key_heads, mechanism
        size = width // heads
        self.q, self.o = (dense(fold_key(key, name), width, width) for name in "qo")
        self.k, self.v = (dense(fold_key(key, name), width, key_heads * size) for name in "kv")
        self.tokens = nnx.Dict(
            {
                name: dense(fold_key(key, name), width, key_heads * math.prod(shape_of(shape, size, size)))
                for name, shape in mechanism.tokens.items()
            }
        )
        self.learned = init_learned(mechanism, key, size, size, key_heads)

    def attend(
        self,
        x: Float[Array, "T D"],
        memory: Float[Array, "S E"] | None = None,
        mask: Mask = Full(),
        position: PositionEncoding = NO_POSITION,
        **places: Any,
    ) -> tuple[Float[Array, "T D"], Any]:
        """Every x against every key of the memory (of x itself, if None) that the mask allows."""
        if memory is not None:
            return self.cross(x, self.keys_values(memory), mask, position, **places)
        return self._reading(*self._both(x), mask, position, **places)

    def keys_values(self, memory: Float[Array, "S D"], values: Float[Array, "S D"] | None = None) -> dict[str, Array]:
        """Keys, values and extras of a memory, by key heads [S G ...]: computed once for many readings.

        `values`: what the values are made of, where that is not the memory itself.
        """
        self._fits("memory", memory)
        told = lambda name: values if name == "v" and values is not None else memory
        return self._remembered({name: each(told(name)) for name, each in self._maps().items()})

    def _maps(self) -> dict[str, Dense]:
        return {"k": self.k, "v": self.v, **self.tokens}

    def _remembered(self, found: dict[str, Array]) -> dict[str, Array]:
        size = self.width // self.heads
        shapes = {"k": (size,), "v": (size,)} | {
            name: shape_of(shape, size, size) for name, shape in self.mechanism.tokens.items()
        }
        return {name: found[name].reshape(len(found[name]), self.key_heads, *shape) for name, shape in shapes.items()}

    def _both(self, x: Float[Array, "T D"]) -> tuple[Float[Array, "T D"], dict[str, Array]]:
        """The queries of x, and what `keys_values` makes of it."""
        self._fits("x", x)
        maps = {"q": self.q, **self._maps()}
        found = dict(zip(maps, fused_projection(maps.values(), x), strict=True))
        return found.pop("q"), self._remembered(found)

    def cross(
        self,
        x: Float[Array, "T D"],
        memory: dict[str, Array],
        mask: Mask = Full(),
        position: PositionEncoding = NO_POSITION,
        i: Int[Places, " T"] | None = None,
        j: Int[Places, " S"] | None = None,
    ) -> tuple[Float[Array, "T D"], Any]:
        """Every x against what `keys_values` made of a memory; x stand at 0…T−1 and keys at 0…S−1 unless given."""
        self._fits("x", x)
        return self._reading(self.q(x), memory, mask, position, i, j)

    def _reading(self, q, memory, mask, position, i=None, j=None):
        T, S = q.shape[0], memory["k"].shape[0]
        # The mechanism's own default aligns the ends; where that is the same it knows the positions while tracing.
        given = {name: at for name, at in {"i": i, "j": j}.items() if at is not None}
        i = np.arange(T, dtype=np.int32) if i is None else i
        j = np.arange(S, dtype=np.int32) if j is None else j
        places = given if T == S else given | {"i": i}

        mechanism, turn = self._turned(position)

        def head(q, memory, fixed, bias, _):
            q, k = turn(q, memory["k"], i, j)
            extra = {"bias": bias, **self._tokens(memory), **fixed}
            y = mechanism.attend(q, k, memory["v"], mask, **places, **extra)
            if position.valued:
                y = y + self._joining(q, k, jnp.asarray(mask(i, j)), i=i, j=j, **extra).astype(y.dtype)
            return y, mechanism.look(q, k, mask, **places, **extra)

        return self._seen(*self._by_heads(head, q, memory, position))

    def causal(
        self, x: Float[Array, "T D"], keep: Bool[Array, " T"] | None = None, position: PositionEncoding = NO_POSITION
    ) -> tuple[Float[Array, "T D"], Any]:
        """A sequence from its beginning, causally; `keep` False is padding, behind the sequence or before it all.

        Positions that turn queries and keys are those of rows: padding in the midst of a sequence takes one there, and
        none in the mechanism's own count, by which features are turned and vectors join values (Shaw's, for which all
        pairs are weighed).
        """
        i = np.arange(x.shape[0], dtype=np.int32)
        at = i if keep is None else jnp.maximum(jnp.cumsum(keep, dtype=jnp.int32) - 1, 0)

        mechanism, turn = self._turned(position)

        def head(q, memory, fixed, bias, _):
            q, k = turn(q, memory["k"], i, i)
            extra = {"bias": bias, **self._tokens(memory), **fixed}
            y = causal(mechanism, q, k, memory["v"], keep=keep, **extra)
            if position.valued:
                mask = Causal() if keep is None else Causal() & KeyPadding(keep) & QueryPadding(keep)
                y = y + self._joining(q, k, jnp.asarray(mask(i, i)), i=at, j=at, **extra).astype(y.dtype)
            return y, mechanism.look(q, k, Causal(), keep=keep, **extra)

        return self._seen(*self._by_heads(head, *self._both(x), position))

    def start(self, length: int, dtype) -> Any:
        """The state before the first token: a leading axis of key heads, and where it is of queries one of theirs."""
        size = self.width // self.heads
        one = lambda: self.mechanism.start(length, size, size, dtype)
        if self.heads > self.key_heads:
            one = jax.vmap(one, axis_size=self.heads // self.key_heads, out_axes=self.mechanism.query_head_axes)
        return jax.vmap(one, axis_size=self.key_heads)()

    def extend(
        self, x: Float[Array, "T D"], state: Any, i: Int[Places, " T"], position: PositionEncoding = NO_POSITION
    ) -> tuple[Float[Array, "T D"], Any]:
        """T new tokens at positions i, given the state. Raises ValueError where a cache is known to be full."""
        mechanism, turn = self._turned(position)

        def head(q, memory, fixed, bias, state):
            q, k = turn(q, memory["k"], i, i)
            extra = {"bias": bias, **fixed}
            y, state = mechanism.extend(state, q, k, memory["v"], i=i, **self._tokens(memory), **extra)
            if position.valued:
                cache = state.memory
                order = jnp.arange(cache.k.shape[0], dtype=jnp.int32)
                slot = cache.count - x.shape[0] + jnp.arange(x.shape[0], dtype=jnp.int32)
                allowed = order[None, :] <= slot[:, None]
                y = y + self._joining(q, cache.k, allowed, i=i, j=cache.i, **cache.tokens, **extra).astype(y.dtype)
            return y, state

        apart = self.mechanism.query_head_axes
        self._fits("x", x)
        # Heads are lifted below, where no number is known any more.
        for cache in caches(state):
            cache.check(x.shape[0])
        # One token at a time, a product is no dearer than to lay its matrix beside others.
        return self._by_heads(head, self.q(x), self.keys_values(x), position, state, apart, apart)

    def _turned(self, position: PositionEncoding) -> tuple[Mechanism, Callable]:
        """The mechanism, and what turns q and k before it: nothing where their features are turned instead."""
        if position.turning and not self.mechanism.turns:
            return self.mechanism.with_rotary(position) or self.mechanism, NO_POSITION.rotate
        return self.mechanism, position.rotate

    def _joining(self, q, k, allowed: Bool[Array, "T S"], *, i, j, bias, **extra) -> Float[Array, "T V"]:
        """Σ_j a_tj r: what a valued position adds to the values, for one head; what nobody sees reaches nothing."""
        sees, seen = allowed.any(axis=1), allowed.any(axis=0)
        extra |= {name: zero_where_padded(seen, extra[name]) for name in self.mechanism.tokens}
        q, k = zero_where_padded(sees, q), zero_where_padded(seen, k)
        return bias.weighted_values(self.mechanism.weights(q, k, allowed, i=i, j=j, bias=bias, **extra), i, j)

    def _by_heads(self, head: Callable, q, memory, position: PositionEncoding, state=None, axes=None, out: Any = 0):
        """`head(q, memory, fixed, bias, state) -> (y, known)` for every query head of q [T D], with its key head's.

        `axes` and `out`: which of the state and of what is known differ among the query heads of one key head.
        Answers (y [T D], known), the latter by key heads, then by the query heads of each if they are several.
        """
        if reason := position.refusal(self.mechanism):
            raise NotImplementedError(f"{self.mechanism} cannot honour {position}: {reason}")
        shape = (self.key_heads,)
        if self.heads > self.key_heads:
            shape = (self.key_heads, self.heads // self.key_heads)
            head = jax.vmap(head, in_axes=(1, None, None, 0, axes), out_axes=(1, out))
        T, q = q.shape[0], q.reshape(q.shape[0], *shape, self.width // self.heads)
        bias = jax.tree.map(lambda leaf: leaf.reshape(*shape, *leaf.shape[1:]), position.bias(self.heads))
        fixed = extras(self.mechanism, self.learned, self.key_heads)
        y, known = jax.vmap(head, in_axes=(1, 1, 0, 0, 0), out_axes=(1, 0))(q, memory, fixed, bias, state)
        return self.o(y.reshape(T, self.width)), known

    def _seen(self, y, looks) -> tuple[Float[Array, "T D"], Any]:
        """Looks by query heads: [H T S]."""
        return y, jax.tree.map(lambda look: look.reshape(self.heads, *look.shape[-2:]), looks)

    def _tokens(self, memory: dict[str, Array]) -> dict[str, Array]:
        return {name: memory[name] for name in self.mechanism.tokens}

    def _fits(self, name: str, x: Float[Array, "T D"]) -> None:
        if x.ndim != 2:
            raise ValueError(
                f"{name} {x.shape} is not [T {self.width}] of one example: "
                "for a batch, write jax.vmap(attention.attend)(x), and likewise of `causal`, `cross` and `extend`"
            )
        if x.shape[1] != self.width:
            raise ValueError(f"{name} has width {x.shape[1]}, and the attention model.width={self.width}")


def check_heads(width: int, heads: int, key_heads: int) -> None:
    """Raise ValueError, naming the field, for numbers of heads that cannot be."""
    for name, value in {"width": width, "heads": heads, "key_heads": key_heads}.items():
        if value < 1:
            raise ValueError(f"model.{name}={value} must be at least 1")
    if width % heads:
        raise ValueError(f"model.heads={heads} must divide model.width={width}")
    if heads % key_heads:
        raise ValueError(f"model.key_heads={key_heads} must divide model.heads={heads}")
