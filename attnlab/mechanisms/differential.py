"""Differential attention: the difference of two softmax attentions."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import final

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from attnlab.mechanisms.base import Traits
from attnlab.mechanisms.cost import Cost, cached, moved
from attnlab.mechanisms.pairwise import Pairwise
from attnlab.mechanisms.softmax import Softmax
from attnlab.ops.counts import check_counts, check_positive
from attnlab.ops.feature.rotated import RotaryEncoding
from attnlab.ops.precision import accumulation_dtype

Pairs = tuple[tuple[Array, Array], tuple[Array, Array]]
"""Queries and keys of the two attentions."""


@dataclass(frozen=True)
class TwoSoftmaxes(Pairwise):
    """Base class of differences of two softmax attentions: softmax(q₁k₁ᵀ) v − λ · softmax(q₂k₂ᵀ) v.

    Raises:
        ValueError: if `block` is below 1 or `softcap` is not above 0.
    """

    block: int | None = None
    """Number of queries and of keys per block, or None to compute all pairs at once."""
    position: RotaryEncoding | None = None
    """Rotary encoding of the queries and keys of both attentions, or None."""
    softcap: float | None = field(default=None, kw_only=True)
    """Bound c of the scores of both attentions, or None. They become c·tanh(s/c), before bias and mask."""
    traits = Traits(bias=True)

    def __post_init__(self):
        check_counts(block=self.block)
        check_positive(softcap=self.softcap)

    @property
    def softmax(self) -> Softmax:
        """Each of the two softmax attentions."""
        return Softmax(block=self.block, softcap=self.softcap)

    @abstractmethod
    def pairs(self, q, k, extra: dict[str, Array]) -> Pairs:
        """Returns the queries and keys of the two attentions."""

    @abstractmethod
    def second_weight(self, extra: dict[str, Array]) -> Float[Array, "#T 1"]:
        """Returns the weight λ of the second attention, for all queries or for each one."""

    def with_rotary(self, position):
        """Returns this mechanism with rotated queries and keys."""
        return replace(self, position=position)

    def weights(self, q, k, allowed, *, i, j, bias=None, **extra):
        """Returns weights [T S], in at least float32, of both signs."""
        attend = lambda q, k: self.softmax.weights(q, k, allowed, i=i, j=j, bias=bias)
        return self._difference(attend, q, k, i, j, extra)

    def attend_all(self, q, k, v, mask, *, i, j, bias=None, **extra):
        """Returns the difference of two attentions."""
        attend = lambda q, k: self.softmax.attend_all(q, k, v, mask, i=i, j=j, bias=bias)
        return self._difference(attend, q, k, i, j, extra)

    def attend_causal(self, q, k, v, block, *, bias=None, **extra):
        """Returns the difference of two causal attentions."""
        attend = lambda q, k: self.softmax.attend_causal(q, k, v, block, bias=bias)
        return self._difference(attend, q, k, block.positions, block.positions, extra)

    def _difference(self, attend: Callable[[Array, Array], Array], q, k, i, j, extra: dict[str, Array]) -> Array:
        """Returns attend(q₁, k₁) − λ · attend(q₂, k₂), with rotated queries and keys."""
        pairs = self.pairs(q, k, extra)
        if (position := self.position) is not None:
            pairs = [position.rotate(*pair, i, j) for pair in pairs]
        one, other = (attend(*pair) for pair in pairs)
        return one - self.second_weight(extra).astype(one.dtype) * other


@final
@dataclass(frozen=True)
class Differential(TwoSoftmaxes):
    """Difference of two softmax attentions, over the halves of queries and keys (differential transformer).

    y = (softmax(q₁k₁ᵀ/√(K/2)) − λ softmax(q₂k₂ᵀ/√(K/2))) v

    λ = exp(λ_q₁·λ_k₁) − exp(λ_q₂·λ_k₂) + λ_init

    `mix_q` and `mix_k` hold the learned vectors λ_q and λ_k of both halves. Each head has its own; in the paper all
    heads of a layer share them. Weights may be negative, and rows sum to 1 − λ. The norm of each head that follows
    belongs to the module. The factor 1 − λ_init after it is left out; the learned scale of the norm can take it. The
    decoding state is a cache of keys and values.

    Raises:
        ValueError: if `block` is below 1, `softcap` is not above 0, or K is odd.

    Source: Ye et al. 2024, eq. 1-3 (arXiv 2410.05258).
    """

    start_mix: float = 0.8
    """λ_init. The paper takes 0.8 − 0.6 exp(−0.3 n) in layer n = 0, 1, …: 0.2 in the first, 0.36 in the second."""

    @property
    def learned(self):
        """`mix_q` and `mix_k`: the vectors λ_q and λ_k of both halves."""
        return {"mix_q": ("K",), "mix_k": ("K",)}

    def initial(self, key, K, V):
        """Returns normal vectors of standard deviation 0.1, as in the authors' code."""
        drawn = 0.1 * jax.random.normal(key, (2, K), jnp.float32)
        return {"mix_q": drawn[0], "mix_k": drawn[1]}

    def pairs(self, q, k, extra):
        """Returns the halves of queries and keys."""
        if (K := q.shape[1]) % 2:
            raise ValueError(f"{self} needs an even width of queries and keys, got {K}")
        return (q[:, : K // 2], k[:, : K // 2]), (q[:, K // 2 :], k[:, K // 2 :])

    def second_weight(self, extra):
        """Returns λ [1 1]."""
        wide = accumulation_dtype(extra["mix_q"].dtype)
        products = extra["mix_q"].astype(wide) * extra["mix_k"].astype(wide)
        one, other = jnp.exp(products.reshape(2, -1).sum(axis=1))
        return (one - other + self.start_mix).reshape(1, 1)

    def cost(self, T, S, K, V, block=None):
        """Counts two softmax attentions over half of the width."""
        one = self.softmax.cost(T, S, K // 2, V, block)
        return Cost(2 * one.flops + 2 * T * V, moved(T, S, K, V), cached(S, K, V))


@final
@dataclass(frozen=True)
class Differential2(TwoSoftmaxes):
    """Difference of two softmax attentions with queries of their own over the same keys (differential attention, v2).

    y_t = (softmax(q_t kᵀ/√K) − sigmoid(mix_t) softmax(other_t kᵀ/√K)) v

    The extra inputs per query are the second query `other` [K] and `mix`, one number. There is no norm and no λ_init.
    The decoding state is that of softmax attention.

    Raises:
        ValueError: if `block` is below 1 or `softcap` is not above 0.

    Source: Ye et al. 2026, differential transformer v2 (the authors' repository, unilm).
    """

    @property
    def queries(self):
        """`other`: the second query. `mix`: how much of its attention is subtracted, before the sigmoid."""
        return {"other": ("K",), "mix": ()}

    def pairs(self, q, k, extra):
        """Returns both sets of queries with the keys."""
        return (q, k), (extra["other"], k)

    def second_weight(self, extra):
        """Returns λ of all queries [T 1]."""
        mix = extra["mix"]
        return jax.nn.sigmoid(mix.astype(accumulation_dtype(mix.dtype)))[:, None]

    def cost(self, T, S, K, V, block=None):
        """Counts two softmax attentions over the same keys."""
        one = self.softmax.cost(T, S, K, V, block)
        return Cost(2 * one.flops + 3 * T * V, one.bytes + 4 * T * (K + 1), one.state_bytes)
