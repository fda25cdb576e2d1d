"""The delta rule over a feature map, as first published."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import final

import jax
import jax.numpy as jnp

from attnlab.mechanisms.chunked import Chunked
from attnlab.mechanisms.cost import Cost, moved
from attnlab.ops import delta
from attnlab.ops.feature import Dpfp, Feature
from attnlab.ops.precision import accumulation_dtype, divide


@final
@dataclass(frozen=True)
class FastWeight(Chunked):
    """Delta rule over a feature map (fast weight programmer).

    S_t = S_{t-1} + β_t k'_tᵀ (v_t − k'_t S_{t-1}), y_t = q'_t S_t, x' = φ(x)/Σφ(x), β = sigmoid(beta)

    The extra input `beta` is one number per token. Features of queries and keys sum to one. If many of them are
    nonzero, their norm is far below one, and even β = 1 erases only part of what a key held. `Delta` uses keys of norm
    one instead. The paper's equation does not scale queries, but the authors' code divides its output by √K
    (`scale_queries`). The state is a matrix [M V].

    Raises:
        ValueError: if `chunk` is below 1, if the feature map is known only up to a factor, or if its features may be
            negative. Their sum may then be nearly zero, and the state grows without bound.

    Source: Schlag et al. 2021, section 4.
    """

    feature: Feature = Dpfp()
    """Feature map, one of `attnlab.FEATURES` that is neither negative nor known only up to a factor."""
    scale_queries: bool = False
    """Whether to divide the features of queries by √K, for K the width of a key, as the authors' code does.

    The default has no scale, because the trained results were measured so.
    """

    def __post_init__(self):
        super().__post_init__()
        if self.feature.scaled:
            raise ValueError(f"feature={self.feature} has no sum: each row is known only up to a factor")
        if self.feature.signed:
            raise ValueError(
                f"feature={self.feature} may be negative, so that the sum of its features may be close to zero"
            )

    @property
    def tokens(self):
        """`beta`: strength of the write, before the sigmoid."""
        return {"beta": ()}

    @property
    def learned(self):
        """Learned arrays of the feature map."""
        return self.feature.learned

    def initial(self, key, K, V):
        """Returns initial values of the feature map's learned arrays."""
        return self.feature.initial(key, K)

    def with_length(self, length):
        """Returns this mechanism with its feature map for `length` positions."""
        return replace(self, feature=self.feature.with_length(length))

    def check_length(self, length):
        """Checks that the feature map supports `length` positions."""
        self.feature.check_length(length)

    def check_positions(self, i):
        """Checks that the feature map supports the positions."""
        self.feature.check(i)

    def init_memory(self, length, K, V, dtype):
        """Returns an empty sum [M V] in at least float32. A sum in bfloat16 loses most of a long sequence."""
        return jnp.zeros((self.feature.dim(K), V), accumulation_dtype(dtype))

    def update(self, memory, q, k, v, block, *, bias=None, beta, **learned):
        """Processes new tokens by chunks."""
        i, K = block.positions, q.shape[1]
        q, k = self.feature.query(q, i, **learned).rows, self.feature.key(k, i, **learned).rows
        q, k = (divide(x, x.sum(axis=1, keepdims=True)).astype(memory.dtype) for x in (q, k))
        q = q * K**-0.5 if self.scale_queries else q
        open_ = jnp.zeros((q.shape[0], 1), memory.dtype)
        beta = jax.nn.sigmoid(beta.astype(memory.dtype))[:, None]
        y, memory = delta.causal(memory, q, k, beta * v.astype(memory.dtype), beta * k, open_, block, self.chunk)
        return y.astype(v.dtype), memory

    def cost(self, T, S, K, V, block=None):
        """Counts the delta rule over M features, and the features."""
        M = self.feature.dim(K)
        size = self.at_once(block)
        flops = delta.flops(T, M, V, size) + 2 * T * (self.feature.flops(K) + 2 * M)
        return Cost(flops, moved(T, T, K, V) + 4 * T, 4 * M * V)
