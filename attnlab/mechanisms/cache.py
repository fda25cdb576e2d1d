"""The cache of keys and values, which is the memory of a pairwise mechanism."""

from __future__ import annotations

from dataclasses import dataclass

import jax
import jax.numpy as jnp
from jax.core import Tracer
from jaxtyping import Array, Bool, Float, Int, PyTree

from attnlab.ops.token_block import TokenBlock
from attnlab.ops.tree import pytree


@pytree
@dataclass(frozen=True)
class Cache:
    """Keys and values of up to N tokens. Queries are not cached, because only the newest are needed."""

    k: Float[Array, "N K"]
    """Keys, in the dtype of the cache."""
    v: Float[Array, "N V"]
    """Values, in the dtype of the cache."""
    tokens: dict[str, Array]
    """Extra inputs per key token, by name, each with a leading axis N."""
    i: Int[Array, " N"]
    """Position of each token."""
    run: Int[Array, " N"]
    """Number of the run that each token belongs to, see `TokenBlock`."""
    count: Int[Array, ""]
    """Number of slots that are written. They are the first ones."""

    @classmethod
    def start(cls, length: int, K: int, V: int, dtype, tokens: dict[str, tuple]) -> Cache:
        """Returns an empty cache.

        Args:
            length: number of slots N.
            K: width of keys.
            V: width of values.
            dtype: dtype of keys, values and extra inputs.
            tokens: shapes of the extra inputs per token, by name, without the leading axis.
        """
        return cls(
            k=jnp.zeros((length, K), dtype),
            v=jnp.zeros((length, V), dtype),
            tokens={name: jnp.zeros((length, *shape), dtype) for name, shape in tokens.items()},
            i=jnp.zeros(length, jnp.int32),
            run=jnp.zeros(length, jnp.int32),
            count=jnp.zeros((), jnp.int32),
        )

    def check(self, new: int | Bool[Array, "*N T"]) -> None:
        """Checks that new tokens fit into the cache.

        Traced values are not checked. The cache may have leading axes, for example of examples and heads.

        Args:
            new: number of new tokens, or the array that marks kept tokens as True. Its leading axes are the first ones
                of the cache.

        Raises:
            ValueError: if they are known not to fit.
        """
        if isinstance(self.count, Tracer) or isinstance(new, Tracer):
            return
        added = new if isinstance(new, int) else jnp.sum(new, axis=-1, dtype=jnp.int32)
        added = jnp.reshape(added, jnp.shape(added) + (1,) * (self.count.ndim - jnp.ndim(added)))
        needed, length = int(jnp.max(self.count + added)), self.k.shape[-2]
        if needed > length:
            raise ValueError(
                f"the cache has room for {length} tokens, got {needed}: start it with length={needed} or more"
            )

    def write(self, k, v, tokens, block: TokenBlock) -> tuple[Cache, Bool[Array, " T"], Bool[Array, "T N"]]:
        """Appends the kept tokens of a block. A token that does not fit is not written.

        Args:
            k: keys [T K].
            v: values [T V].
            tokens: extra inputs per token, by name.
            block: positions, padding and segments of the tokens.

        Returns:
            The new cache, whether there was a slot for each token [T], and which slots each token sees [T N]. A token
            sees its own slot and earlier slots of its own run.
        """
        N = self.k.shape[0]
        slot = self.count + jnp.cumsum(block.keep, dtype=jnp.int32) - 1
        # Padding is directed past the end, where writes are dropped.
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


def caches(state: PyTree) -> list[Cache]:
    """Returns all caches in a state."""
    is_cache = lambda x: isinstance(x, Cache)
    return [leaf for leaf in jax.tree.leaves(state, is_leaf=is_cache) if is_cache(leaf)]
