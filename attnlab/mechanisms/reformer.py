"""Reformer: attention within buckets of locality-sensitive hashing."""

from dataclasses import dataclass, field, replace
from functools import reduce
from typing import ClassVar, final

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Int

from attnlab.mechanisms.base import Traits
from attnlab.mechanisms.cost import Cost, cached, moved
from attnlab.mechanisms.pairwise import Pairwise
from attnlab.ops import blockwise
from attnlab.ops.counts import check_counts, check_positive
from attnlab.ops.fixed_draws import fixed_draws, fixed_key
from attnlab.ops.layer import l2_normalize
from attnlab.ops.learned_score import Scores
from attnlab.ops.mask import Mask
from attnlab.ops.precision import accumulation_dtype
from attnlab.ops.score import dot, scaled_dot
from attnlab.ops.softmax import masked_softmax
from attnlab.ops.tree import pytree

EPSILON = 1e-6  # added to a key's mean square, as in the authors' code
FEW = 8  # default number of buckets, if the length is unknown or short
# If T·S is at most PAIRS, as for 256 queries and keys, or one query and a cache, all pairs are compared. Sorting then
# takes longer than it saves. Relative time of sorting, forward and backward, for blocks of 16 and 64: 2.2 to 5.9 up to
# 256 tokens, 1.15 and 0.85 at 512, 0.48 and 0.39 at 1,024 (one core, AMD EPYC, float32, heads of width 16).
PAIRS = 2**16


@final
@dataclass(frozen=True)
class Reformer(Pairwise):
    """Softmax attention over the keys that share a hash bucket with the query (Reformer).

    y_t = softmax(q_t·k/‖k‖) v over the keys that share a bucket with q_t in any round

    The bucket of x in a round is argmax [xR ; −xR]. R is a random matrix of `buckets`/2 columns, the same for queries
    and keys (section 2). A query that shares a bucket with no key that it may see returns zero.

    Differences from the authors' code (Trax, Hugging Face) and from the paper:

    - The scale is that of the code: keys are divided by their root mean square √(‖k‖²/K + 1e-6), and scores by √K.
    - In the code, query and key of a token are one vector. Its score with itself exceeds all others, and is masked
      unless nothing else is left. Here they are two vectors, and a token's own key is treated like any other.
    - A pair counts once, in the first round in which it shares a bucket. In eq. 6-8 of the paper it counts 1/N in each
      of N rounds.
    - If tokens are alike, most fall into few buckets, and all pairs of these are compared. The paper compares only
      neighbours in sorted order.

    If sorted by blocks, time is O(rounds·T·S/buckets) for buckets of about equal size. With `buckets` None and a
    mechanism from `with_length` it is O(rounds·T·block). The results of the rounds are merged by their softmax sums.
    Forward-mode derivatives are then not supported.

    Rotary positions are not supported, because buckets depend on the direction of a rotated vector and not only on
    distances.

    Raises:
        ValueError: if `buckets` is odd or below 2, `rounds` or `block` is below 1, `softcap` is not above 0, or `seed`
            is outside 0 … 2³²−1.

    Source: Kitaev et al. 2020.
    """

    buckets: int | None = None
    """Number of buckets, even.

    None is 8, or for longer sequences the number of blocks that `with_length` computes. A bucket is then about as
    long as a block, twice as long as in the paper.
    """
    rounds: int = 4
    """Number of rounds of hashing."""
    seed: int = 0
    """Seed of the random matrices."""
    block: int | None = 64
    """Number of queries and of keys per block, or None to compare all pairs in O(T·S).

    With blocks, each round sorts tokens by bucket and visits only the blocks that share a bucket. If there are at most
    `PAIRS` pairs, all of them are compared.
    """
    scale_queries: bool = False
    """Whether to divide scores by √K once more, as the paper's text says if read literally."""
    softcap: float | None = field(default=None, kw_only=True)
    """Bound c of the scores, or None. Scores become c·tanh(s/c), before bias and mask (Gemma 2: c = 50)."""
    traits = Traits(bias=True)
    missing_values: ClassVar[dict] = {"scale_queries": True}
    """Values of fields that are missing in older saved configurations."""

    def __post_init__(self):
        if self.buckets is not None and (self.buckets < 2 or self.buckets % 2):
            raise ValueError(f"buckets={self.buckets} must be even, at least 2")
        check_counts(rounds=self.rounds, block=self.block)
        check_positive(softcap=self.softcap)
        if not 0 <= self.seed < 2**32:
            raise ValueError(f"seed={self.seed} must be in 0 … 2³²−1")

    def with_length(self, length):
        """Returns this mechanism with one bucket per block of `length` tokens.

        It returns itself if `buckets` is set, or if there would be at most 8.
        """
        many = 2 * round(length / self.block / 2) if self.block else FEW
        return replace(self, buckets=many) if self.buckets is None and many > FEW else self

    def sees_all(self, length):
        """Returns False: a query sees only its buckets."""
        return False

    def weights(self, q, k, allowed, *, i, j, bias=None):
        """Returns weights [T S]: softmax over the allowed keys that share a bucket in any round."""
        q, k = _ready(q, k)
        met = reduce(jnp.logical_or, shares_bucket(self._hash(q), self._hash(k)))
        return masked_softmax(self._scores(bias)(q, k, i, j), allowed & met)

    def attend_all(self, q, k, v, mask, *, i, j, bias=None):
        """Attends with all pairs, or round by round."""
        if not (block := self._sorts(q.shape[0], k.shape[0])):
            return super().attend_all(q, k, v, mask, i=i, j=j, bias=bias)
        return self._by_rounds(q, k, v, blockwise.PositionedMask(mask, i, j), i, j, bias, block)

    def attend_causal(self, q, k, v, block, *, bias=None):
        """Attends causally with all pairs, or round by round."""
        if not (size := self._sorts(q.shape[0], k.shape[0])):
            return super().attend_causal(q, k, v, block, bias=bias)
        order = np.arange(q.shape[0], dtype=np.int32)
        positioned = blockwise.PositionedMask(block.mask, order, order)
        return self._by_rounds(q, k, v, positioned, block.i, block.i, bias, size)

    def cost(self, T, S, K, V, block=None):
        """Counts the hash of every round, and the pairs of the blocks that share a bucket."""
        size = self._sorts(T, S)
        near, rounds = (_near(S, self._buckets, size), self.rounds) if size else (S, 1)
        return Cost(
            flops=rounds * T * near * (2 * K + 2 * V + 8 + 3 * (self.softcap is not None))
            + (T + S) * K * self.rounds * self._buckets,
            bytes=moved(T, S, K, V),
            state_bytes=cached(S, K, V),
        )

    def _sorts(self, T: int, S: int) -> int | None:
        """Returns the block length for T queries and S keys, or None if all pairs are compared."""
        return self.block if T * S > PAIRS else None

    def _scores(self, bias) -> Scores:
        """Returns the score function with the bias."""
        return Scores(scaled_dot if self.scale_queries else dot, {}, bias, self.softcap)

    @property
    def _buckets(self) -> int:
        """Number of buckets."""
        return self.buckets or FEW

    def _hash(self, x):
        """Returns the bucket of every row in every round [T rounds]."""
        shape = (x.shape[1], self.rounds * self._buckets // 2)
        # Drawn in float32 and cast, so that every precision has the same buckets.
        with fixed_draws():
            directions = jax.random.normal(fixed_key(self.seed), shape, jnp.float32)
        turned = x @ directions.astype(x.dtype)
        turned = turned.reshape(x.shape[0], self.rounds, self._buckets // 2)
        return jnp.argmax(jnp.concatenate([turned, -turned], axis=2), axis=2).astype(jnp.int32)

    def _by_rounds(self, q, k, v, positioned, i, j, bias, block: int):
        """Attends round by round, and merges the results."""
        q, k = _ready(q, k)
        i, j, of_q, of_k = jnp.asarray(i), jnp.asarray(j), self._hash(q), self._hash(k)
        scores, near = self._scores(bias), _near(k.shape[0], self._buckets, block)
        one = lambda n: _round(q, k, v, positioned, scores, i, j, of_q[:, :n], of_k[:, :n], block, near)
        rounds = [one(n) for n in range(1, self.rounds + 1)]
        return blockwise.merge_parts(rounds).astype(v.dtype)


def _near(S: int, buckets: int, block: int) -> int:
    """Returns the number of keys that a block of queries attends to in a round, if buckets are about equally full."""
    return min(S, 2 * block + S // buckets)


def _round(q, k, v, positioned, scores, i, j, of_q, of_k, block: int, near: int):
    """Returns the output and softmax norm of the last of these rounds.

    Tokens are sorted by bucket, attention visits the blocks that share a bucket, and the result is put back in order.
    """
    order, keys = (jnp.argsort(x[:, -1], stable=True).astype(jnp.int32) for x in (of_q, of_k))
    places = np.arange(q.shape[0], dtype=np.int32), np.arange(k.shape[0], dtype=np.int32)
    of_q, of_k = of_q[order], of_k[keys]
    masks = [
        blockwise.PositionedMask(positioned.mask, jnp.asarray(positioned.i)[order], jnp.asarray(positioned.j)[keys]),
        blockwise.PositionedMask(FirstSharedRound(of_q, of_k), *places),
    ]
    schedule = block_visits(of_q[:, -1], of_k[:, -1], block, near)
    y, norm = blockwise.attend(
        q[order], k[keys], v[keys], scores, masks, i=i[order], j=j[keys], block=block, schedule=schedule
    )
    back = jnp.argsort(order)
    return y[back], norm[back]


def _ready(q, k):
    """Returns queries, and keys of unit length, in at least float32."""
    return q.astype(accumulation_dtype(q.dtype)), l2_normalize(
        k.astype(accumulation_dtype(q.dtype)), k.shape[1] * EPSILON
    )


def shares_bucket(one: Int[Array, "T R"], other: Int[Array, "S R"]) -> list[Bool[Array, "T S"]]:
    """Returns for every round which pairs share a bucket."""
    return [one[:, n][:, None] == other[:, n][None, :] for n in range(one.shape[1])]


def block_visits(one: Int[Array, " T"], other: Int[Array, " S"], block: int, near: int) -> blockwise.LoopSchedule:
    """Returns which blocks of keys each block of queries visits: those that share a bucket.

    Args:
        one: buckets of the queries, sorted [T].
        other: buckets of the keys, sorted [S].
        block: number of tokens per block.
        near: approximate number of keys that a block of queries attends to.
    """
    rows, columns = (blockwise.equal_blocks(x.shape[0], block) for x in (one, other))
    first = one[::rows]
    last = one[jnp.minimum(jnp.arange(first.shape[0], dtype=jnp.int32) * rows + rows, one.shape[0]) - 1]
    # Buckets are sorted, so the keys that share a bucket with a block of queries are contiguous.
    start, stop = jnp.searchsorted(other, first, side="left"), jnp.searchsorted(other, last, side="right")
    blocks = start[:, None] // columns + jnp.arange(-(-other.shape[0] // columns), dtype=jnp.int32)[None, :]
    count = jnp.where(stop > start, -(-stop // columns) - start // columns, 0)
    masked = blockwise.BlockVisits(blocks.astype(jnp.int32), count.astype(jnp.int32), -(-near // columns))
    return blockwise.LoopSchedule(
        blockwise.BlockVisits(np.zeros((1, 0), np.int32), np.zeros(1, np.int32)), masked, columns
    )


@pytree
@dataclass(frozen=True, eq=False)
class FirstSharedRound(Mask):
    """Mask of the pairs that share a bucket in the last of several rounds, and in none before."""

    one: Int[Array, "T R"]
    """Buckets of the queries [T R]."""
    other: Int[Array, "S R"]
    """Buckets of the keys [S R]."""
    indexed = True

    def __call__(self, i, j):
        """Returns the mask of rows i of `one` and rows j of `other`."""
        *before, now = shares_bucket(self.one[i], self.other[j])
        return reduce(lambda pairs, met: pairs & ~met, before, now)
