"""Multi-head attention: projections around any mechanism."""

from __future__ import annotations

import math
from typing import Any

import jax
import jax.numpy as jnp
from flax import nnx
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from attnlab.mechanisms.base import Mechanism, causal, shape_of
from attnlab.modules.dense import Dense, child
from attnlab.modules.position import Position
from attnlab.ops.mask import Causal, Full, Kept, Mask


class Attention(nnx.Module):
    """q = x W_q, k = m W_k, v = m W_v by heads, mixed by `mechanism`, joined and projected (Vaswani et al. 2017, 3.2).

    One example: x [T D]. Three ways to call it: `attend` (to a memory, or to x itself), `whole` (causally, a sequence
    from its beginning) and `extend` (causally, given a state). Each answers (y, what else it knows): a look at its
    map where the mechanism is watched, or the new state.

    Raises ValueError where heads do not divide the width; NotImplementedError where the mechanism cannot honour a turn.
    """

    def __init__(self, key: PRNGKeyArray, width: int, heads: int, mechanism: Mechanism, position: Any = None):
        if width % heads:
            raise ValueError(f"model.heads={heads} must divide model.width={width}")
        position = Position() if position is None else position
        if getattr(position, "turning", False) and not mechanism.turns:
            raise NotImplementedError(
                f"{mechanism} cannot honour {position}: its scores are not products of q and k alone"
            )
        self.heads, self.mechanism, self.position = heads, mechanism, position
        self.q, self.k, self.v, self.o = (Dense(child(key, name), width, width) for name in "qkvo")
        size = width // heads
        self.tokens = nnx.Dict(
            {
                name: Dense(child(key, name), width, heads * math.prod(shape_of(shape, size, size)))
                for name, shape in mechanism.tokens.items()
            }
        )
        keys = jax.random.split(child(key, "learned"), heads)
        learned = jax.vmap(lambda key: mechanism.initial(key, size, size))(keys)
        self.learned = nnx.Dict({name: nnx.Param(value) for name, value in learned.items()})

    def attend(
        self,
        x: Float[Array, "T D"],
        memory: Float[Array, "S D"] | None = None,
        mask: Mask = Full(),
        **places: Any,
    ) -> tuple[Float[Array, "T D"], Any]:
        """Every x against every key of the memory (of x itself, if None) that the mask allows."""
        return self.read(x, self.remember(x if memory is None else memory), mask, turned=memory is None, **places)

    def remember(self, memory: Float[Array, "S D"]) -> dict[str, Array]:
        """Keys, values and extras of a memory, by heads [S H ...]: computed once for many readings."""
        size = memory.shape[1] // self.heads
        tokens = {
            name: self.tokens[name](memory).reshape(memory.shape[0], self.heads, *shape_of(shape, size, size))
            for name, shape in self.mechanism.tokens.items()
        }
        return {"k": self._split(self.k(memory)), "v": self._split(self.v(memory)), **tokens}

    def read(self, x, memory: dict[str, Array], mask: Mask = Full(), turned: bool = False, i=None, j=None):
        """X against what `remember` made of a memory; `turned` where both stand on one line of positions."""
        T, S = x.shape[0], memory["k"].shape[0]
        if turned:
            i = jnp.arange(S - T, S, dtype=jnp.int32) if i is None else i
            j = jnp.arange(S, dtype=jnp.int32) if j is None else j

        def head(q, memory, fixed, bias):
            k, v, tokens = memory["k"], memory["v"], {n: memory[n] for n in self.mechanism.tokens}
            if turned:
                q, k = self.position.turn(q, k, i, j)
            given = {"i": i, "j": j, "bias": bias, **tokens, **fixed}
            return self.mechanism.attend(q, k, v, mask, **given), self.mechanism.look(q, k, mask, **given)

        bias = self.position.bias(self.heads) if turned else None
        y, seen = jax.vmap(head, in_axes=(1, 1, 0, 0), out_axes=(1, 0))(
            self._split(self.q(x)), memory, self._fixed(), bias
        )
        return self.o(y.reshape(x.shape)), seen

    def whole(self, x: Float[Array, "T D"], keep: Bool[Array, " T"] | None = None, i: Int[Array, " T"] | None = None):
        """A sequence from its beginning, causally; positions 0…T−1 unless given; `keep` False is padding."""
        i = jnp.arange(x.shape[0], dtype=jnp.int32) if i is None else i

        def head(q, memory, fixed, bias):
            q, k = self.position.turn(q, memory["k"], i, i)
            tokens = {n: memory[n] for n in self.mechanism.tokens}
            y = causal(self.mechanism, q, k, memory["v"], keep=keep, i=i, bias=bias, **tokens, **fixed)
            mask = Causal() if keep is None else Causal() & Kept(keep)
            return y, self.mechanism.look(q, k, mask, i=i, bias=bias, **tokens, **fixed)

        bias = self.position.bias(self.heads)
        y, seen = jax.vmap(head, in_axes=(1, 1, 0, 0), out_axes=(1, 0))(
            self._split(self.q(x)), self.remember(x), self._fixed(), bias
        )
        return self.o(y.reshape(x.shape)), seen

    def start(self, length: int, width: int, dtype) -> Any:
        """The state before the first token, a leading axis of heads."""
        size = width // self.heads
        return jax.vmap(lambda _: self.mechanism.start(length, size, size, dtype))(jnp.arange(self.heads))

    def extend(self, x: Float[Array, "T D"], state: Any, i: Int[Array, " T"]) -> tuple[Float[Array, "T D"], Any]:
        """T new tokens at positions i, given the state."""

        def head(q, memory, fixed, state, bias):
            q, k = self.position.turn(q, memory["k"], i, i)
            tokens = {n: memory[n] for n in self.mechanism.tokens}
            return self.mechanism.extend(state, q, k, memory["v"], i=i, bias=bias, **tokens, **fixed)

        y, state = jax.vmap(head, in_axes=(1, 1, 0, 0, 0), out_axes=(1, 0))(
            self._split(self.q(x)), self.remember(x), self._fixed(), state, self.position.bias(self.heads)
        )
        return self.o(y.reshape(x.shape)), state

    def _split(self, x: Float[Array, "T D"]) -> Float[Array, "T H K"]:
        return x.reshape(x.shape[0], self.heads, -1)

    def _fixed(self) -> dict[str, Array]:
        """What each head has of its own: learned arrays, and numbers that are not learned."""
        return {name: value[...] for name, value in self.learned.items()} | self.mechanism.heads(self.heads)
