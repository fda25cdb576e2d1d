"""Linear attention."""

from dataclasses import dataclass

import jax.numpy as jnp

from attnlab.mechanisms.base import Cost, Mechanism
from attnlab.ops import linear
from attnlab.ops.feature import EluPlusOne, Feature
from attnlab.ops.precision import divide, product, wide


@dataclass(frozen=True)
class Linear(Mechanism):
    """y_t = φ(q_t) Σ_j φ(k_j)ᵀ v_j / φ(q_t)·Σ_j φ(k_j) (Katharopoulos et al. 2020, eq. 4-5 and 18-20).

    `feature` is one of `attnlab.FEATURES`; `normalise` False leaves the denominator out. O((T+S)·M·V) where the
    mask depends on the keys alone, and causally by blocks of `block` tokens; its state is an [M, V+1] matrix, of one
    size for any length. Other masks cost O(T·S).
    """

    feature: Feature = EluPlusOne()
    normalise: bool = True
    block: int = 64

    def __post_init__(self):
        if self.block < 1:
            raise ValueError(f"block={self.block} must be at least 1")

    def weights(self, q, k, allowed, *, i, j, bias=None):
        """[T S]: φ(q)·φ(k) of the allowed pairs, rows summing to one where normalised."""
        pairs = jnp.where(allowed, product(self.feature(q), self.feature(k).T), 0)
        return divide(pairs, pairs.sum(axis=1, keepdims=True)) if self.normalise else pairs

    def mix(self, q, k, v, mask, *, i, j, bias=None):
        """Every query against one sum over the keys, where the mask allows that sum."""
        if (factors := mask.factors(i, j)) is None:
            return super().mix(q, k, v, mask, i=i, j=j, bias=bias)
        seen = factors[1]
        features = jnp.where(seen[:, None], self.feature(k), 0)
        state = linear.gather(features.astype(wide(v.dtype)), self._values(v))
        return self._answer(product(self.feature(q).astype(state.dtype), state), v)

    def memory(self, length, K, V, dtype):
        """The empty sum, [M, V+1]: float32 at least, since bfloat16 sums lose most of a long sequence."""
        return jnp.zeros((self.feature.dim(K), V + self.normalise), wide(dtype))

    def absorb(self, memory, q, k, v, block, *, bias=None):
        """One block, given the sum over all before it."""
        q, k = self.feature(q), self.feature(k)
        y, memory = linear.chunk(memory, q, k, self._values(v), block.pairs, block.sees, block.stays, block.carries)
        return self._answer(y, v), memory

    def cost(self, T, S, K, V, block=None):
        """One sum over the keys read by every query; causally, pairs within a block besides."""
        M, wide_V = self.feature.dim(K), V + self.normalise
        pairs = 0 if block is None else T * block * (2 * M + 2 * wide_V)
        return Cost(
            flops=(T + S) * M * 2 * wide_V + pairs,
            bytes=4 * (T * K + S * (K + V) + T * V),
            state_bytes=4 * M * wide_V,
        )

    def _values(self, v):
        v = v.astype(wide(v.dtype))
        return linear.with_ones(v) if self.normalise else v

    def _answer(self, y, v):
        return (linear.normalise(y) if self.normalise else y).astype(v.dtype)
