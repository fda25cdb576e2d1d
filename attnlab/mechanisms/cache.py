"""The cache of keys and values: what a pairwise mechanism remembers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
from jax.core import Tracer
from jaxtyping import Array, Bool, Float, Int

from attnlab.mechanisms.position_state import TokenBlock
from attnlab.ops.tree import pytree


@pytree
@dataclass(frozen=True)
class Cache:
    """Room for N tokens, of which the first `count` are written: keys, values, extras, positions, runs.

    Keeps the dtype of the keys and values. Queries are never cached: only the newest are needed.
    """

    k: Float[Array, "N K"]
    v: Float[Array, "N V"]
    tokens: dict[str, Array]
    i: Int[Array, " N"]
    run: Int[Array, " N"]
    count: Int[Array, ""]

    @classmethod
    def start(cls, length: int, K: int, V: int, dtype, tokens: dict[str, tuple]) -> Cache:
        """An empty cache for `length` tokens."""
        return cls(
            k=jnp.zeros((length, K), dtype),
            v=jnp.zeros((length, V), dtype),
            tokens={name: jnp.zeros((length, *shape), dtype) for name, shape in tokens.items()},
            i=jnp.zeros(length, jnp.int32),
            run=jnp.zeros(length, jnp.int32),
            count=jnp.zeros((), jnp.int32),
        )

    def check(self, new: int | Bool[Array, " T"]) -> None:
        """Raise ValueError where `new` tokens (their number, or which are kept) are known not to fit.

        Of several heads' caches under leading axes too.
        """
        if isinstance(self.count, Tracer) or isinstance(new, Tracer):
            return
        wanted, length = int(jnp.max(self.count)) + int(jnp.sum(jnp.asarray(new))), self.k.shape[-2]
        if wanted > length:
            raise ValueError(f"the cache has room for {length} tokens, and {wanted} are to be kept: start it longer")

    def write(self, k, v, tokens, block: TokenBlock) -> tuple[Cache, Bool[Array, " T"], Bool[Array, "T N"]]:
        """The cache with the block's kept tokens behind the others; which had room; which slots each one sees.

        A token sees its own slot and those before it, of its own run. What does not fit touches nothing.
        """
        N = self.k.shape[0]
        slot = self.count + jnp.cumsum(block.keep, dtype=jnp.int32) - 1
        # Padding is sent past the end, where writes are dropped.
        target = jnp.where(block.keep, slot, N)

        def put(old, new):
            return jnp.asarray(old).at[target].set(new.astype(old.dtype), mode="drop")

        cache = Cache(
            k=put(self.k, k),
            v=put(self.v, v),
            tokens={name: put(self.tokens[name], tokens[name]) for name in self.tokens},
            i=put(self.i, block.i),
            run=put(self.run, block.run),
            count=self.count + jnp.sum(block.keep, dtype=jnp.int32),
        )
        order = jnp.arange(N, dtype=jnp.int32)
        visible = (order[None, :] <= slot[:, None]) & (cache.run[None, :] == block.run[:, None])
        return cache, slot < N, visible & block.keep[:, None]


def caches(state: Any) -> list[Cache]:
    """All caches in a state."""
    is_cache = lambda x: isinstance(x, Cache)
    return [leaf for leaf in jax.tree.leaves(state, is_leaf=is_cache) if is_cache(leaf)]
