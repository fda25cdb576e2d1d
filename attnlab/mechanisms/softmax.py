"""Softmax attention."""

from collections.abc import Callable
from dataclasses import dataclass

from attnlab.mechanisms.base import Cost, Mechanism
from attnlab.ops.score import scaled_dot
from attnlab.ops.softmax import masked_softmax


@dataclass(frozen=True)
class Softmax(Mechanism):
    """y = softmax(score(q, k) + bias) v, over the keys that the mask allows (Vaswani et al. 2017, eq. 1).

    `score` is one of `attnlab.SCORES`. Time and memory O(T·S); its state is a cache of keys and values.
    """

    score: Callable = scaled_dot
    turns = True
    biases = True

    def weights(self, q, k, allowed, *, i, j, bias=None, **learned):
        """[T S], rows summing to one (to zero where nothing is allowed), in float32 at least."""
        scores = self.score(q, k, **learned)
        return masked_softmax(scores if bias is None else scores + bias(q, i, j).astype(scores.dtype), allowed)

    def cost(self, T, S, K, V, block=None):
        """Two products of T×S pairs, and five operations a pair for the softmax."""
        return Cost(
            flops=T * S * (2 * K + 2 * V + 5),
            bytes=4 * (T * K + S * (K + V) + T * V),
            state_bytes=4 * S * (K + V),
        )
