"""Sigmoid attention."""

from dataclasses import dataclass
from typing import final

import jax
import jax.numpy as jnp

from attnlab.mechanisms.base import Traits
from attnlab.mechanisms.cost import Cost, cached, moved
from attnlab.mechanisms.pairwise import Pairwise
from attnlab.ops.precision import accumulation_dtype
from attnlab.ops.score import scaled_dot


@final
@dataclass(frozen=True)
class Sigmoid(Pairwise):
    """Sigmoid attention: every weight is independent of the others.

    y_t = Σ_j sigmoid(q_t·k_j/√K + bias + shift) v_j

    The decoding state is a cache of keys and values. Time and memory are O(T·S).

    Source: Ramapuram et al. 2024, eq. 3.
    """

    shift: float | None = None
    """Number that is added to scores, or None for −log n, where n is the number of keys that the query sees.

    Under a full mask −log n is the paper's −log of the length. It is the same in every form of a call under any mask.
    At initialisation the weights then sum to about one.
    """
    traits = Traits(rotary=True, bias=True)

    def weights(self, q, k, allowed, *, i, j, bias=None):
        """Returns weights [T S] between 0 and 1, in at least float32."""
        scores = scaled_dot(q, k)
        scores = scores if bias is None else scores + bias(q, i, j).astype(scores.dtype)
        # Forbidden pairs are masked before and after the sigmoid. Otherwise their gradient would be 0·NaN.
        return jnp.where(allowed, jax.nn.sigmoid(jnp.where(allowed, scores, 0) + self._shifts(allowed, q.dtype)), 0)

    def cost(self, T, S, K, V, block=None):
        """Counts two products of T×S pairs, and five operations per pair for the sigmoid."""
        return Cost(
            flops=T * S * (2 * K + 2 * V + 5),
            bytes=moved(T, S, K, V),
            state_bytes=cached(S, K, V),
        )

    def _shifts(self, allowed, dtype):
        """Returns what is added to scores: one number, or one per query [T 1]."""
        if self.shift is not None:
            return self.shift
        count = jnp.sum(allowed, axis=1, dtype=jnp.int32, keepdims=True)
        return -jnp.log(jnp.maximum(count, 1).astype(accumulation_dtype(dtype)))
