"""Softmax attention over a pattern of pairs: what all forms of sparse and dense softmax attention share."""

from abc import abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jaxtyping import Array, Float, Int

from attnlab.mechanisms.base import Traits
from attnlab.mechanisms.cost import Cost, cached, moved
from attnlab.mechanisms.pairwise import Pairwise
from attnlab.ops import blockwise, edges
from attnlab.ops.counts import check_counts, check_positive
from attnlab.ops.learned_score import Bias, Scores, initial, is_length_bound, shapes
from attnlab.ops.mask import ArrayOrNumpy, Full, Mask
from attnlab.ops.precision import weighted_sum
from attnlab.ops.score import PRODUCTS, scaled_dot
from attnlab.ops.softmax import masked_softmax
from attnlab.ops.token_block import dense_mask

SINKS = ("none", "zero", "learned")
# Causally, pairs are computed for some rows at a time, each with the keys up to its last row: with four parts, 5/8 of
# all pairs. Fewer rows than 64 make products too small. More parts gain little, and compile longer outside of `jit`.
PARTS, ROWS = 4, 64


@dataclass(frozen=True)
class PatternSoftmax(Pairwise):
    """Softmax attention over the pairs that both the mask and a fixed pattern allow.

    y = softmax(score(q, k) + bias) v

    The decoding state is a cache of keys and values. A subclass gives the `pattern`.

    Raises:
        ValueError: if `block` or `length` is below 1, if `softcap` is not above 0, if `score` is not callable, or if a
            key is known to lie beyond `length` of a score that learns something per position.
    """

    score: Callable = field(default=scaled_dot, kw_only=True)
    """Score function, one of `attnlab.SCORES`. Default: q·k / √K."""
    block: int | None = field(default=None, kw_only=True)
    """Number of queries and of keys per block, or None to compute all pairs at once.

    None takes O(T·S) time and memory. Blocks give the same result with memory linear in T and S, and skip blocks that
    the mask leaves empty. They do not support forward-mode derivatives (`jax.jvp`).
    """
    length: int = field(default=512, kw_only=True)
    """Maximum number of positions of a score that learns something per position. Other scores ignore it."""
    sink: str = field(default="none", kw_only=True)
    """Whether part of the attention may go to no key: "none", "zero" or "learned".

    A sink adds e^b to the denominator: a_tj = e^{s_tj} / (e^b + Σ_n e^{s_tn}). b is 0 for "zero" (Miller 2023,
    "softmax plus one"), and one learned number per head for "learned" (gpt-oss, OpenAI 2025). Query heads that share a
    key head also share it, but each has its own in gpt-oss.
    """
    softcap: float | None = field(default=None, kw_only=True)
    """Bound c of the scores, or None. Scores become c·tanh(s/c), before bias and mask (Gemma 2: c = 50)."""

    def __post_init__(self):
        check_counts(block=self.block, length=self.length)
        check_positive(softcap=self.softcap)
        if self.sink not in SINKS:
            raise ValueError(f"sink={self.sink!r} must be one of {', '.join(SINKS)}")
        if not callable(self.score):
            raise ValueError(f"score={self.score!r} must be a score function, for example SCORES['dot']")
        _ = self.pattern  # raises if its sizes are invalid

    @property
    @abstractmethod
    def pattern(self) -> Mask:
        """Mask of the pairs that can interact, by position. It is combined with the mask of the call."""

    @property
    def traits(self):  # pyright: ignore[reportIncompatibleVariableOverride]
        """Rotary positions need a score that is a product of query and key. Edges are computed without a sink."""
        return Traits(
            edges=self.sink == "none",
            rotary=self.score in PRODUCTS,
            bias=True,
            position_dependent=not isinstance(self.pattern, Full) or is_length_bound(self.score),
        )

    @property
    def learned(self):
        """Learned arrays of the score, and the sink if it is learned."""
        return shapes(self.score, self.length) | ({"sink": ()} if self.sink == "learned" else {})

    def initial(self, key, K, V):
        """Returns initial values of the score's learned arrays, and a sink of zero."""
        sink = {"sink": jnp.zeros((), jnp.float32)} if self.sink == "learned" else {}
        return initial(self.score, self.length, key, K) | sink

    def with_length(self, length):
        """Returns this mechanism with `length`, or itself if its score does not learn anything per position."""
        return replace(self, length=length) if is_length_bound(self.score) else self

    def check_positions(self, i: Int[ArrayOrNumpy, " S"]) -> None:
        """Checks that positions lie within `length`, if the score learns something per position.

        Raises:
            ValueError: if a position is known to lie beyond. A traced position beyond makes the output NaN instead.
        """
        if not is_length_bound(self.score) or isinstance(i, Tracer):
            return
        if (last := np.max(np.asarray(i), initial=0)) >= self.length:
            raise ValueError(f"{self} supports positions 0 … {self.length - 1}, got a key at position {last}")

    def sees_all(self, length):
        """Returns whether the pattern is known to leave out none of the tokens."""
        return self.pattern.over(0, 1, 0, length) is True

    def scores(self, learned: Mapping[str, Array], bias: Bias | None) -> Scores:
        """Returns the scores of a call, given the learned arrays by name and the bias."""
        own = {name: learned[name] for name in shapes(self.score, self.length)}
        return Scores(self.score, own, bias, self.softcap)

    def weights(self, q, k, allowed, *, i, j, bias=None, **learned):
        """Returns weights [T S] in at least float32. Rows sum to one, or to zero if no key is allowed.

        With a sink, rows sum to less than one.
        """
        self.check_positions(j)
        if not isinstance(self.pattern, Full):
            allowed = allowed & self.pattern(i, j)
        sink, scores = learned.get("sink"), self.scores(learned, bias)(q, k, i, j)
        if self.sink == "none":
            return masked_softmax(scores, allowed)
        column = jnp.full((q.shape[0], 1), 0 if sink is None else sink, scores.dtype)
        some = jnp.ones((q.shape[0], 1), bool)
        return masked_softmax(jnp.append(scores, column, axis=1), jnp.append(allowed, some, axis=1))[:, :-1]

    def edge_weights(self, q, k, ends, *, i, j, bias=None, **learned):
        """Returns weights [E] of the edges. The weights of each query sum to one."""
        self.check_positions(j)
        if not isinstance(self.pattern, Full):
            ends = ends.restricted(edges.edge_scores(lambda q, k, i, j: self.pattern(i, j), q, k, ends, i, j))
        q, k, scores = edges.split_scores(self.scores(learned, bias), q, k)
        return edges.softmax(edges.edge_scores(scores, q, k, ends, i, j), ends)

    def attend_all(self, q, k, v, mask, *, i, j, bias=None, **learned):
        """Attends with all pairs at once, or by blocks."""
        self.check_positions(j)
        if self.block is None:
            return weighted_sum(self.weights(q, k, dense_mask(mask, i, j), i=i, j=j, bias=bias, **learned), v)
        scores, positioned = self.scores(learned, bias), blockwise.PositionedMask(mask, i, j)
        y, norm = self._by_blocks(q, k, v, scores, positioned, i, j, self.block)
        return self._with_sink(y, norm, learned.get("sink")).astype(v.dtype)

    def attend_causal(self, q, k, v, block, *, bias=None, **learned):
        """Attends causally with all pairs of some rows at once, or by blocks."""
        order = np.arange(q.shape[0], dtype=np.int32)
        if self.block is None:
            parts = np.array_split(order, min(PARTS, max(1, len(order) // ROWS)))
            return jnp.concatenate([self._attend_rows(q, k, v, block, rows, bias, learned) for rows in parts])
        scores, positioned = self.scores(learned, bias), blockwise.PositionedMask(block.mask, order, order)
        y, norm = self._by_blocks(q, k, v, scores, positioned, block.i, block.i, self.block)
        return self._with_sink(y, norm, learned.get("sink")).astype(v.dtype)

    def cost(self, T, S, K, V, block=None):
        """Counts two products per computed pair, five operations for the softmax, and three for the cap.

        Every score is counted as the scaled dot product. By blocks, only pairs that the pattern allows are counted.
        """
        pairs = T * S if self.block is None else self._pairs(T, S)
        return Cost(
            flops=pairs * (2 * K + 2 * V + 5 + 3 * (self.softcap is not None)),
            bytes=moved(T, S, K, V),
            state_bytes=cached(S, K, V),
        )

    def _attend_rows(self, q, k, v, block, rows: np.ndarray, bias, learned):
        """Attends from successive rows to the keys up to the last of them, [rows V]."""
        end = rows.size and rows[-1] + 1
        here, past = slice(end - rows.size, end), slice(end)
        allowed = dense_mask(block.mask, rows, np.arange(end, dtype=np.int32))
        at = block.positions
        weights = self.weights(q[here], k[past], allowed, i=at[here], j=at[past], bias=bias, **learned)
        return weighted_sum(weights, v[past])

    def _pairs(self, T, S):
        """Returns the number of pairs that are computed by blocks."""
        return T * S

    def _by_blocks(self, q, k, v, scores, positioned, i, j, block: int):
        """Attends by blocks over the pairs that both the mask and the pattern allow, without a sink.

        Returns:
            The outputs [T V], and the logarithm of the sum of exponentials of each query [T].
        """
        masks = [positioned, blockwise.PositionedMask(self.pattern, i, j)]
        return blockwise.attend(q, k, v, scores, masks, i=i, j=j, block=block)

    def _with_sink(self, y: Float[Array, "T V"], norm: Float[Array, " T"], sink: Float[Array, ""] | None):
        """Returns the outputs of softmax attention, times the share of the attention that does not go to the sink.

        Args:
            y: outputs without a sink [T V].
            norm: logarithm n of the sum of exponentials of each query [T]. The share is e^n / (e^n + e^b).
            sink: score b of the sink if it is learned, else None.
        """
        if self.sink == "none":
            return y
        return y * jax.nn.sigmoid(norm if sink is None else norm - sink.astype(norm.dtype))[:, None]
