"""Mechanisms that compute a weight for every pair of a query and a key."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from attnlab.mechanisms.base import Traits
from attnlab.mechanisms.cache import Cache
from attnlab.mechanisms.checked import CheckedMechanism, causal_block
from attnlab.mechanisms.inputs import shape_of, split, zero_where_padded
from attnlab.ops import edges
from attnlab.ops.mask import EdgeList, Mask
from attnlab.ops.precision import weighted_sum
from attnlab.ops.token_block import TokenBlock, dense_mask


@dataclass(frozen=True)
class Pairwise(CheckedMechanism):
    """A mechanism with a weight for every pair: y = weights(q, k) v.

    A subclass implements `weights`. Attention under any mask follows, and decoding with a KV cache, of keys and values.
    The methods that a subclass may also implement are `edge_weights`, with the trait `edges`, and faster forms of
    `attend_all` and `attend_causal`.
    """

    @abstractmethod
    def weights(self, q, k, allowed: Bool[Array, "T S"], *, i, j, bias=None, **extra) -> Float[Array, "T S"]:
        """Returns the weight of every pair.

        Args:
            q: queries [T K].
            k: keys [S K].
            allowed: the pairs that the mask allows [T S].
            i: positions of the queries [T].
            j: positions of the keys [S].
            bias: function `bias(q, i, j) -> [T S]` that is added to scores, or None.
            **extra: extra inputs, by the names in `tokens`, `queries`, `learned` and `heads`.

        Returns:
            Weights [T S], zero for pairs that are not allowed.
        """

    def edge_weights(self, q, k, ends: edges.EdgeIndex, *, i, j, bias=None, **extra) -> Float[Array, " E"]:
        """Returns the weight of every edge of a graph.

        The weight of an edge equals that of the same pair in `weights`. Memory is O(E). The arguments are those of
        `weights`, with `ends`, the indices of the edges, in place of `allowed`.

        Returns:
            Weights [E], zero for edges that are padding.

        Raises:
            NotImplementedError: if this mechanism does not have the trait `edges`.
        """
        raise NotImplementedError(f"{self} cannot compute weights for edges only")

    def attend_all(self, q, k, v, mask: Mask, *, i, j, bias=None, **extra):
        """Computes all pairs."""
        return weighted_sum(self.weights(q, k, dense_mask(mask, i, j), i=i, j=j, bias=bias, **extra), v)

    def attend_edges(self, q, k, v, edges_: EdgeList, *, i, j, bias=None, **extra):
        """Computes the edges alone."""
        if (ends := edges.from_edge_list(edges_, i, j)) is None:
            return None
        rows, columns = ends.reachable()
        q, k = zero_where_padded(rows, q), zero_where_padded(columns, k)
        return edges.sum_values(self.edge_weights(q, k, ends, i=i, j=j, bias=bias, **extra), v, ends)

    def attend_causal(self, q, k, v, block: TokenBlock, *, bias=None, **extra):
        """Computes all pairs."""
        at = block.positions
        return weighted_sum(self.weights(q, k, block.pairs, i=at, j=at, bias=bias, **extra), v)

    def init_memory(self, length: int, K: int, V: int, dtype):
        """Returns an empty `Cache` for `length` tokens, in `dtype`."""
        shapes = {name: shape_of(shape, K, V) for name, shape in self.tokens.items()}
        return Cache.start(length, K, V, dtype, shapes)

    def update(self, memory: Cache, q, k, v, block: TokenBlock, *, bias=None, **extra):
        """Writes the block to the cache and attends to all cached keys."""
        tokens, rest = split(extra, self.tokens)
        cache, room, visible = memory.write(k, v, tokens, block)
        weights = self.weights(q, cache.k, visible, i=block.i, j=cache.i, bias=bias, **cache.tokens, **rest)
        y = weighted_sum(weights, cache.v).astype(v.dtype)
        # A write past the end cannot raise inside a trace. Its output becomes NaN instead.
        return jnp.where(room[:, None], y, jnp.nan), cache


@dataclass(frozen=True)
class CausalPairwise(Pairwise):
    """A pairwise mechanism whose weights depend on the order of the keys before a query. It only attends causally."""

    traits = Traits(non_causal=False, rotary=True, bias=True, position_dependent=True)

    def attend_all(self, q, k, v, mask: Mask, *, i, j, bias=None, **extra):
        """Attends under `Causal()`, if there are as many queries as keys and positions are known while tracing."""
        return self.attend_causal(q, k, v, causal_block(self, mask, i, j), bias=bias, **extra)
