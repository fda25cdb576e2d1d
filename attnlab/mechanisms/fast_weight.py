"""The delta rule over a feature map, as it was first published."""

from __future__ import annotations

from dataclasses import dataclass, replace

import jax
import jax.numpy as jnp

from attnlab.mechanisms.chunked import Chunked
from attnlab.mechanisms.cost import Cost, moved
from attnlab.ops import delta
from attnlab.ops.feature import Dpfp, Feature
from attnlab.ops.precision import accumulation_dtype, divide


@dataclass(frozen=True)
class FastWeight(Chunked):
    """S_t = S_{t-1} + β_t k'_tᵀ (v_t − k'_t S_{t-1}), y_t = q'_t S_t, x' = φ(x)/Σφ(x) (Schlag et al. 2021, section 4).

    Keys and queries of features that sum to one: dense ones have a norm far below one, and then even β = 1 erases only
    part of what a key held (`delta` has keys of norm one instead). `feature` is any of `attnlab.FEATURES` that is
    neither negative nor known up to a factor; `beta` is a raw number a token, β = sigmoid(beta). Queries are not
    scaled, as in the authors' code. By chunks of `chunk` tokens; its state is an [M V] matrix.

    Raises ValueError for a chunk below 1, and for a map that is known up to a factor, or whose features may be
    negative: their sum may be nearly zero, and what they write then grows without bound.
    """

    feature: Feature = Dpfp()

    def __post_init__(self):
        super().__post_init__()
        if self.feature.scaled:
            raise ValueError(f"feature={self.feature} is known up to a factor for each row: it has no sum")
        if self.feature.signed:
            raise ValueError(f"feature={self.feature} may be negative: its features may sum to nearly zero")

    @property
    def tokens(self):
        """The raw strength of the write."""
        return {"beta": ()}

    @property
    def learned(self):
        """Those of the feature map."""
        return self.feature.learned

    def initial(self, key, K, V):
        """As the feature map."""
        return self.feature.initial(key, K)

    def sized(self, length):
        """With its feature map for that length."""
        return replace(self, feature=self.feature.sized(length))

    def fit(self, length):
        """As the feature map."""
        self.feature.fit(length)

    def check(self, block):
        """As the feature map."""
        self.feature.check(block.positions)

    def init_memory(self, length, K, V, dtype):
        """The empty sum [M V], in float32 at least: bfloat16 loses most of a long sequence."""
        return jnp.zeros((self.feature.dim(K), V), accumulation_dtype(dtype))

    def update(self, memory, q, k, v, block, *, bias=None, beta, **learned):
        """Tokens after a state, by chunks."""
        i = block.positions
        q, k = self.feature.query(q, i, **learned).rows, self.feature.key(k, i, **learned).rows
        q, k = (divide(x, x.sum(axis=1, keepdims=True)).astype(memory.dtype) for x in (q, k))
        open_ = jnp.zeros((q.shape[0], 1), memory.dtype)
        strength = jax.nn.sigmoid(beta.astype(memory.dtype))
        y, memory = delta.causal(memory, q, k, v, open_, strength, block, self.chunk)
        return y.astype(v.dtype), memory

    def cost(self, T, S, K, V, block=None):
        """As the delta rule over M features, and the features."""
        M = self.feature.dim(K)
        size = self.at_once(block)
        flops = delta.flops(T, M, V, size) + 2 * T * (self.feature.flops(K) + 2 * M)
        return Cost(flops, moved(T, T, K, V) + 4 * T, 4 * M * V)
