"""Softmax attention."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np
from jax.core import Tracer
from jaxtyping import Int

from attnlab.mechanisms.base import Mechanism
from attnlab.mechanisms.cost import Cost, cached, moved
from attnlab.ops import blockwise, edges
from attnlab.ops.counts import check_counts
from attnlab.ops.mask import Full, Mask, Places
from attnlab.ops.score import PRODUCTS, Scores, initial, is_length_bound, scaled_dot, shapes
from attnlab.ops.softmax import masked_softmax


@dataclass(frozen=True)
class Softmax(Mechanism):
    """y = softmax(score(q, k) + bias) v, over the keys that the mask allows (Vaswani et al. 2017, eq. 1).

    `score` is one of `attnlab.SCORES`. Its state is a cache of keys and values. `block` None computes all pairs at
    once, O(T·S) in time and memory; a number, the same result by blocks of so many queries and keys, in memory linear
    in T and S, leaving out the blocks that the mask empties, and without forward-mode derivatives (`jax.jvp`). `length`
    bounds the positions of a score that learns something for each; others leave it alone. Raises ValueError where keys
    are known to stand beyond it.
    """

    score: Callable = field(default=scaled_dot, kw_only=True)
    block: int | None = field(default=None, kw_only=True)
    length: int = field(default=512, kw_only=True)
    biases = True

    def __post_init__(self):
        check_counts(block=self.block, length=self.length)
        if not callable(self.score):
            raise ValueError(f"score={self.score!r} must be a score itself, as attnlab.SCORES['dot'] is")
        _ = self.pattern  # whose sizes are refused where they cannot be

    @property
    def line(self) -> str:
        """A line about this one, in a list of several."""
        told = (type(self).__doc__ or "").splitlines()[0]
        # Those of a pattern go by blocks as they are.
        return told if self.block is None or type(self) is not Softmax else f"by blocks of {self.block}, {told}"

    @property
    def turns(self):
        """Where the score is a product of query and key."""
        return self.score in PRODUCTS

    @property
    def placed(self):  # pyright: ignore[reportIncompatibleVariableOverride]
        """Where it has a pattern, or its score learns something for every position."""
        return not isinstance(self.pattern, Full) or is_length_bound(self.score)

    @property
    def learned(self):
        """What the score learns."""
        return shapes(self.score, self.length)

    @property
    def pattern(self) -> Mask:
        """Which pairs may meet at all, by their positions, whatever the mask of a call."""
        return Full()

    def initial(self, key, K, V):
        """Where the score begins."""
        return initial(self.score, self.length, key, K)

    def sized(self, length):
        """Itself, unless its score learns something for every position."""
        return replace(self, length=length) if is_length_bound(self.score) else self

    def check(self, block):
        """As `reach`, of the tokens that count."""
        self.reach(block.positions)

    def reach(self, j: Int[Places, " S"]) -> None:
        """Raise ValueError where a key is known to stand where the score learned nothing; traced, it answers NaN."""
        if not is_length_bound(self.score) or isinstance(j, Tracer):
            return
        if (last := np.max(np.asarray(j), initial=0)) >= self.length:
            raise ValueError(f"{self} reads positions below length={self.length}: a key stands at {last}")

    def sees_all(self, length):
        """Where its pattern is known to leave none of them out."""
        return self.pattern.over(0, 1, 0, length) is True

    def weights(self, q, k, allowed, *, i, j, bias=None, **learned):
        """[T S], rows summing to one (to zero where nothing is allowed), in float32 at least."""
        self.reach(j)
        if not isinstance(self.pattern, Full):
            allowed = allowed & self.pattern(i, j)
        return masked_softmax(Scores(self.score, learned, bias)(q, k, i, j), allowed)

    def edge_weights(self, q, k, ends, *, i, j, bias=None, **learned):
        """[E], those of a query summing to one."""
        self.reach(j)
        if not isinstance(self.pattern, Full):
            ends = ends.restricted(edges.edge_scores(lambda q, k, i, j: self.pattern(i, j), q, k, ends, i, j))
        q, k, scores = edges.split_scores(Scores(self.score, learned, bias), q, k)
        return edges.softmax(edges.edge_scores(scores, q, k, ends, i, j), ends)

    def attend_all(self, q, k, v, mask, *, i, j, bias=None, **learned):
        """All pairs at once, or by blocks."""
        self.reach(j)
        if self.block is None:
            return super().attend_all(q, k, v, mask, i=i, j=j, bias=bias, **learned)
        scores, rule = Scores(self.score, learned, bias), blockwise.Rule(mask, i, j)
        return self._by_blocks(q, k, v, scores, rule, i, j, self.block).astype(v.dtype)

    def attend_causal(self, q, k, v, block, *, bias=None, **learned):
        """All pairs at once, or by blocks."""
        if self.block is None:
            return super().attend_causal(q, k, v, block, bias=bias, **learned)
        self.check(block)
        order = np.arange(q.shape[0], dtype=np.int32)
        scores, rule = Scores(self.score, learned, bias), blockwise.Rule(block.mask, order, order)
        return self._by_blocks(q, k, v, scores, rule, block.i, block.i, self.block).astype(v.dtype)

    def cost(self, T, S, K, V, block=None):
        """Two products of the pairs that are computed, and five operations a pair; the score as the scaled dot product.

        By blocks those that meet by the pattern, else all.
        """
        pairs = T * S if self.block is None else self._pairs(T, S)
        return Cost(
            flops=pairs * (2 * K + 2 * V + 5),
            bytes=moved(T, S, K, V),
            state_bytes=cached(S, K, V),
        )

    def _pairs(self, T, S):
        """How many pairs are computed by blocks."""
        return T * S

    def _by_blocks(self, q, k, v, scores, rule, i, j, block: int):
        rules = [rule, blockwise.Rule(self.pattern, i, j)]
        return blockwise.attend(q, k, v, scores, rules, i=i, j=j, block=block)[0]
