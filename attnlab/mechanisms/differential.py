"""Differential attention: the difference of two softmax attentions."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import final

import jax
import jax.numpy as jnp
from jaxtyping import Array, Int

from attnlab.mechanisms.base import Traits
from attnlab.mechanisms.cost import Cost, cached, moved
from attnlab.mechanisms.pairwise import Pairwise
from attnlab.mechanisms.softmax import Softmax
from attnlab.ops.counts import check_counts
from attnlab.ops.feature.rotated import RotaryEncoding
from attnlab.ops.mask import Places
from attnlab.ops.precision import accumulation_dtype

Pairs = tuple[tuple[Array, Array], tuple[Array, Array]]
"""Queries and keys of the two attentions."""


def rotated(position: RotaryEncoding | None, pairs: Pairs, i: Int[Places, " T"], j: Int[Places, " S"]) -> Pairs:
    """Returns the queries and keys of both attentions, rotated if there is a rotary encoding."""
    if position is None:
        return pairs
    (q1, k1), (q2, k2) = pairs
    return position.rotate(q1, k1, i, j), position.rotate(q2, k2, i, j)


@final
@dataclass(frozen=True)
class Differential(Pairwise):
    """Difference of two softmax attentions, over the halves of queries and keys (differential transformer).

    y = (softmax(q₁k₁ᵀ/√(K/2)) − λ softmax(q₂k₂ᵀ/√(K/2))) v

    λ = exp(λ_q₁·λ_k₁) − exp(λ_q₂·λ_k₂) + λ_init

    `mix_q` and `mix_k` hold the learned vectors λ_q and λ_k of both halves. Weights may be negative, and rows sum to
    1 − λ. The norm of each head and the factor 1 − λ_init that follow belong to the module. The decoding state is a
    cache of keys and values.

    Raises:
        ValueError: if `block` is below 1, or K is odd.

    Source: Ye et al. 2024, eq. 1-3 (arXiv 2410.05258).
    """

    start_mix: float = 0.8
    """λ_init. The paper takes 0.8 − 0.6 exp(−0.3 n) in layer n = 0, 1, …"""
    block: int | None = None
    """Number of queries and of keys per block, or None to compute all pairs at once."""
    position: RotaryEncoding | None = None
    """Rotary encoding of the halves, or None. `position.rotate(q, k, i, j)` returns rotated queries and keys."""
    traits = Traits(bias=True)

    def __post_init__(self):
        check_counts(block=self.block)

    @property
    def softmax(self) -> Softmax:
        """Softmax attention of each half."""
        return Softmax(block=self.block)

    def with_rotary(self, position):
        """Returns this mechanism with rotated halves."""
        return replace(self, position=position)

    @property
    def learned(self):
        """`mix_q` and `mix_k`: the vectors λ_q and λ_k of both halves."""
        return {"mix_q": ("K",), "mix_k": ("K",)}

    def initial(self, key, K, V):
        """Returns normal vectors of standard deviation 0.1, as in the authors' code."""
        drawn = 0.1 * jax.random.normal(key, (2, K), jnp.float32)
        return {"mix_q": drawn[0], "mix_k": drawn[1]}

    def weights(self, q, k, allowed, *, i, j, bias=None, mix_q, mix_k):
        """Returns weights [T S], in at least float32, of both signs."""
        one, other = (self.softmax.weights(*half, allowed, i=i, j=j, bias=bias) for half in self._halves(q, k, i, j))
        return one - self._mix(mix_q, mix_k, one.dtype) * other

    def attend_all(self, q, k, v, mask, *, i, j, bias=None, mix_q, mix_k):
        """Returns the difference of two attentions."""
        halves = self._halves(q, k, i, j)
        one, other = (self.softmax.attend_all(*half, v, mask, i=i, j=j, bias=bias) for half in halves)
        return one - self._mix(mix_q, mix_k, v.dtype) * other

    def attend_causal(self, q, k, v, block, *, bias=None, mix_q, mix_k):
        """Returns the difference of two causal attentions."""
        halves = self._halves(q, k, block.positions, block.positions)
        one, other = (self.softmax.attend_causal(*half, v, block, bias=bias) for half in halves)
        return one - self._mix(mix_q, mix_k, v.dtype) * other

    def cost(self, T, S, K, V, block=None):
        """Counts two softmax attentions over half of the width."""
        one = self.softmax.cost(T, S, K // 2, V, block)
        return Cost(2 * one.flops + 2 * T * V, moved(T, S, K, V), cached(S, K, V))

    def _halves(self, q, k, i, j) -> Pairs:
        """Returns the queries and keys of both halves, rotated if there is a rotary encoding."""
        if (K := q.shape[1]) % 2:
            raise ValueError(f"{self} needs an even width of queries and keys, got {K}")
        halves = (q[:, : K // 2], k[:, : K // 2]), (q[:, K // 2 :], k[:, K // 2 :])
        return rotated(self.position, halves, i, j)

    def _mix(self, mix_q, mix_k, dtype):
        """Returns λ."""
        half, wide = mix_q.shape[0] // 2, accumulation_dtype(mix_q.dtype)
        products = mix_q.astype(wide) * mix_k.astype(wide)
        one, other = jnp.sum(products[:half]), jnp.sum(products[half:])
        return (jnp.exp(one) - jnp.exp(other) + self.start_mix).astype(dtype)


@final
@dataclass(frozen=True)
class Differential2(Pairwise):
    """Difference of two softmax attentions with queries of their own over the same keys (differential attention, v2).

    y_t = (softmax(q_t kᵀ/√K) − sigmoid(mix_t) softmax(other_t kᵀ/√K)) v

    The extra inputs per query are the second query `other` [K] and `mix`, one number. There is no norm and no λ_init.
    The decoding state is that of softmax attention.

    Raises:
        ValueError: if `block` is below 1.

    Source: Ye et al. 2026, differential transformer v2 (the authors' repository, unilm).
    """

    block: int | None = None
    """Number of queries and of keys per block, or None to compute all pairs at once."""
    position: RotaryEncoding | None = None
    """Rotary encoding of both queries and the keys, or None."""
    traits = Traits(bias=True)

    def __post_init__(self):
        check_counts(block=self.block)

    @property
    def softmax(self) -> Softmax:
        """Softmax attention of each set of queries."""
        return Softmax(block=self.block)

    def with_rotary(self, position):
        """Returns this mechanism with rotated queries and keys."""
        return replace(self, position=position)

    @property
    def queries(self):
        """`other`: the second query. `mix`: how much of its attention is subtracted, before the sigmoid."""
        return {"other": ("K",), "mix": ()}

    def weights(self, q, k, allowed, *, i, j, bias=None, other, mix):
        """Returns weights [T S], in at least float32, of both signs."""
        sets = self._sets(q, other, k, i, j)
        first, second = (self.softmax.weights(*each, allowed, i=i, j=j, bias=bias) for each in sets)
        return first - jax.nn.sigmoid(mix.astype(first.dtype))[:, None] * second

    def attend_all(self, q, k, v, mask, *, i, j, bias=None, other, mix):
        """Returns the difference of two attentions."""
        sets = self._sets(q, other, k, i, j)
        first, second = (self.softmax.attend_all(*each, v, mask, i=i, j=j, bias=bias) for each in sets)
        return first - jax.nn.sigmoid(mix)[:, None].astype(v.dtype) * second

    def attend_causal(self, q, k, v, block, *, bias=None, other, mix):
        """Returns the difference of two causal attentions."""
        sets = self._sets(q, other, k, block.positions, block.positions)
        first, second = (self.softmax.attend_causal(*each, v, block, bias=bias) for each in sets)
        return first - jax.nn.sigmoid(mix)[:, None].astype(v.dtype) * second

    def cost(self, T, S, K, V, block=None):
        """Counts two softmax attentions over the same keys."""
        one = self.softmax.cost(T, S, K, V, block)
        return Cost(2 * one.flops + 3 * T * V, one.bytes + 4 * T * (K + 1), one.state_bytes)

    def _sets(self, q, other, k, i, j) -> Pairs:
        """Returns each set of queries with the keys, rotated if there is a rotary encoding."""
        sets = (q, k), (other, k)
        return rotated(self.position, sets, i, j)
