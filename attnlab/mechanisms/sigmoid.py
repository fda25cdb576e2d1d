"""Sigmoid attention."""

from dataclasses import dataclass

import jax
import jax.numpy as jnp

from attnlab.mechanisms.base import Mechanism
from attnlab.mechanisms.cost import Cost, cached, moved
from attnlab.ops.precision import accumulation_dtype
from attnlab.ops.score import scaled_dot


@dataclass(frozen=True)
class Sigmoid(Mechanism):
    """y_t = Σ_j sigmoid(q_t·k_j/√K + bias + shift) v_j: no weight depends on another (Ramapuram et al. 2024, eq. 3).

    `shift` None is −log n, n the number of keys that the query may see: the paper's −log of the length under a full
    mask, and under any mask the same in every form of a call; weights then sum to about one at the start. Its state
    is a cache of keys and values. Time and memory O(T·S).
    """

    shift: float | None = None
    turns = True
    biases = True

    def weights(self, q, k, allowed, *, i, j, bias=None):
        """[T S], each weight in 0 … 1, in float32 at least."""
        scores = scaled_dot(q, k)
        scores = scores if bias is None else scores + bias(q, i, j).astype(scores.dtype)
        # What is forbidden is chosen away on both sides, or its gradient would be 0·NaN.
        return jnp.where(allowed, jax.nn.sigmoid(jnp.where(allowed, scores, 0) + self._shifts(allowed, q.dtype)), 0)

    def cost(self, T, S, K, V, block=None):
        """Two products of T×S pairs, and five operations a pair for the sigmoid."""
        return Cost(
            flops=T * S * (2 * K + 2 * V + 5),
            bytes=moved(T, S, K, V),
            state_bytes=cached(S, K, V),
        )

    def _shifts(self, allowed, dtype):
        if self.shift is not None:
            return self.shift
        count = jnp.sum(allowed, axis=1, dtype=jnp.int32, keepdims=True)
        return -jnp.log(jnp.maximum(count, 1).astype(accumulation_dtype(dtype)))
