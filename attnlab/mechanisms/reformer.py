"""Attention within buckets of locality-sensitive hashing."""

from dataclasses import dataclass, replace
from functools import reduce
from typing import ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Int

from attnlab.mechanisms.base import Mechanism
from attnlab.mechanisms.cost import Cost, cached, moved
from attnlab.ops import blockwise
from attnlab.ops.counts import check_counts
from attnlab.ops.layer import l2_normalize
from attnlab.ops.mask import Mask
from attnlab.ops.precision import accumulation_dtype
from attnlab.ops.score import Scores, dot, scaled_dot
from attnlab.ops.softmax import masked_softmax
from attnlab.ops.tree import pytree

EPSILON = 1e-6  # of a key's mean square, as in the authors' code
FEW = 8  # buckets of one that is not told how long its sequences are, and of short ones
# Pairs that are all compared, as of 256 queries and keys, or of one query and a cache: to sort takes longer than it
# saves. To both sides, forward and backward 2.2 to 5.9 times as long up to 256 tokens, by blocks of 16 and 64; as long
# (1.15, .85) at 512, half (.48, .39) at 1,024 (one core, AMD EPYC, float32, heads of 16).
PAIRS = 2**16


@dataclass(frozen=True)
class Reformer(Mechanism):
    """y_t = softmax(q_t·k/‖k‖) v over the keys that share a bucket with q_t in any round (Kitaev et al. 2020).

    A round's bucket of x is argmax [xR ; −xR], R random of `buckets`/2 columns, drawn by `seed` (their section 2), the
    same for queries and keys. The scale is that of the authors' code (Trax, and Hugging Face's): keys over their root
    mean square √(‖k‖²/K + 1e-6), and scores over √K. `scale_queries` divides scores by √K once more, as the paper's
    text says where read literally. In that code query and key of a token are one vector, whose score with itself
    outweighs all: it is masked unless nothing else is left. Here they are two: a token's own key is a key as any other,
    and a query that shares a bucket with no key it may see answers zero. `block` None compares all pairs, O(T·S), as
    does any where these are few (`PAIRS`); a number sorts each round by buckets and visits the blocks whose buckets
    meet, O(rounds·T·S/buckets) if they are about as full; rounds are put together by their sums, and a pair counts in
    the first in which it is met (in their eq. 6-8 1/N in each of N). `buckets` None: 8, and of what `sized` makes for
    longer sequences as many as they have blocks, so that a bucket is about as long as a block (the paper's are half as
    long) and all takes O(rounds·T·block). Where tokens are alike most stand in few buckets, and all pairs of these are
    compared: the paper compares neighbours in order alone. Buckets depend on where a turned vector points, and not on
    distances alone, so that rotary positions lose their meaning. Sorted, it has no forward-mode derivatives.
    """

    buckets: int | None = None
    rounds: int = 4
    seed: int = 0
    block: int | None = 64
    scale_queries: bool = False
    biases = True
    missing_values: ClassVar[dict] = {"scale_queries": True}

    def __post_init__(self):
        if self.buckets is not None and (self.buckets < 2 or self.buckets % 2):
            raise ValueError(f"buckets={self.buckets} must be even, at least 2")
        check_counts(rounds=self.rounds, block=self.block)
        if not 0 <= self.seed < 2**32:
            raise ValueError(f"seed={self.seed} must be in 0 … 2³²−1")

    def sized(self, length):
        """With as many buckets as `length` tokens make blocks, where none are named."""
        many = 2 * round(length / self.block / 2) if self.block else FEW
        return replace(self, buckets=many) if self.buckets is None and many > FEW else self

    def sees_all(self, length):
        """No: it sees its buckets alone."""
        return False

    def weights(self, q, k, allowed, *, i, j, bias=None):
        """[T S]: softmax over the allowed keys met in any round."""
        q, k = _ready(q, k)
        met = reduce(jnp.logical_or, shared(self._hash(q), self._hash(k)))
        return masked_softmax(self._scores(bias)(q, k, i, j), allowed & met)

    def attend_all(self, q, k, v, mask, *, i, j, bias=None):
        """All pairs, or round by round."""
        if not (block := self._sorts(q.shape[0], k.shape[0])):
            return super().attend_all(q, k, v, mask, i=i, j=j, bias=bias)
        return self._by_rounds(q, k, v, blockwise.Rule(mask, i, j), i, j, bias, block)

    def attend_causal(self, q, k, v, block, *, bias=None):
        """All pairs, or round by round."""
        if not (size := self._sorts(q.shape[0], k.shape[0])):
            return super().attend_causal(q, k, v, block, bias=bias)
        order = np.arange(q.shape[0], dtype=np.int32)
        rule = blockwise.Rule(block.mask, order, order)
        return self._by_rounds(q, k, v, rule, block.i, block.i, bias, size)

    def cost(self, T, S, K, V, block=None):
        """Every round's hash, and the pairs of the blocks that meet."""
        size = self._sorts(T, S)
        near, rounds = (_near(S, self._buckets, size), self.rounds) if size else (S, 1)
        return Cost(
            flops=rounds * T * near * (2 * K + 2 * V + 8) + (T + S) * K * self.rounds * self._buckets,
            bytes=moved(T, S, K, V),
            state_bytes=cached(S, K, V),
        )

    def _sorts(self, T: int, S: int) -> int | None:
        """The length of the blocks of so many queries and keys; None where all pairs are compared."""
        return self.block if T * S > PAIRS else None

    def _scores(self, bias) -> Scores:
        return Scores(scaled_dot if self.scale_queries else dot, {}, bias)

    @property
    def _buckets(self) -> int:
        return self.buckets or FEW

    def _hash(self, x):
        """The bucket of every row in every round, [T rounds]."""
        shape = (x.shape[1], self.rounds * self._buckets // 2)
        # Drawn in single precision and cast, so that every precision has the same buckets.
        turned = x @ jax.random.normal(jax.random.key(self.seed), shape, jnp.float32).astype(x.dtype)
        turned = turned.reshape(x.shape[0], self.rounds, self._buckets // 2)
        return jnp.argmax(jnp.concatenate([turned, -turned], axis=2), axis=2).astype(jnp.int32)

    def _by_rounds(self, q, k, v, rule, i, j, bias, block: int):
        q, k = _ready(q, k)
        i, j, of_q, of_k = jnp.asarray(i), jnp.asarray(j), self._hash(q), self._hash(k)
        scores, near = self._scores(bias), _near(k.shape[0], self._buckets, block)
        one = lambda n: _round(q, k, v, rule, scores, i, j, of_q[:, :n], of_k[:, :n], block, near)
        rounds = [one(n) for n in range(1, self.rounds + 1)]
        return blockwise.merge_parts(rounds).astype(v.dtype)


def _near(S: int, buckets: int, block: int) -> int:
    """Keys that a block of queries meets in a round, of buckets about as full: one, and what stands in its blocks."""
    return min(S, 2 * block + S // buckets)


def _round(q, k, v, rule, scores, i, j, of_q, of_k, block: int, near: int):
    """The last of these rounds: sorted by bucket, through the blocks that meet, and back in order."""
    order, keys = (jnp.argsort(x[:, -1], stable=True).astype(jnp.int32) for x in (of_q, of_k))
    places = np.arange(q.shape[0], dtype=np.int32), np.arange(k.shape[0], dtype=np.int32)
    of_q, of_k = of_q[order], of_k[keys]
    rules = [
        blockwise.Rule(rule.mask, jnp.asarray(rule.i)[order], jnp.asarray(rule.j)[keys]),
        blockwise.Rule(Newly(of_q, of_k), *places),
    ]
    ways = meetings(of_q[:, -1], of_k[:, -1], block, near)
    y, norm = blockwise.attend(q[order], k[keys], v[keys], scores, rules, i=i[order], j=j[keys], block=block, ways=ways)
    back = jnp.argsort(order)
    return y[back], norm[back]


def _ready(q, k):
    """Queries, and keys of unit length, in single precision at least."""
    return q.astype(accumulation_dtype(q.dtype)), l2_normalize(
        k.astype(accumulation_dtype(q.dtype)), k.shape[1] * EPSILON
    )


def shared(one: Int[Array, "T R"], other: Int[Array, "S R"]) -> list[Bool[Array, "T S"]]:
    """Of every round, whether each pair falls into one bucket."""
    return [one[:, n][:, None] == other[:, n][None, :] for n in range(one.shape[1])]


def meetings(one: Int[Array, " T"], other: Int[Array, " S"], block: int, near: int) -> blockwise.LoopSchedule:
    """For sorted buckets of queries and keys, the blocks of keys whose buckets meet those of each block of queries.

    `near`: how many keys that is, roughly.
    """
    rows, columns = (blockwise.equal_blocks(x.shape[0], block) for x in (one, other))
    first = one[::rows]
    last = one[jnp.minimum(jnp.arange(first.shape[0], dtype=jnp.int32) * rows + rows, one.shape[0]) - 1]
    start, stop = jnp.searchsorted(other, first, side="left"), jnp.searchsorted(other, last, side="right")
    blocks = start[:, None] // columns + jnp.arange(-(-other.shape[0] // columns), dtype=jnp.int32)[None, :]
    count = jnp.where(stop > start, -(-stop // columns) - start // columns, 0)
    part = blockwise.BlockVisits(blocks.astype(jnp.int32), count.astype(jnp.int32), -(-near // columns))
    return blockwise.LoopSchedule(
        blockwise.BlockVisits(np.zeros((1, 0), np.int32), np.zeros(1, np.int32)), part, columns
    )


@pytree
@dataclass(frozen=True, eq=False)
class Newly(Mask):
    """The pairs that fall into one bucket in the last of some rounds, and in none before it."""

    one: Int[Array, "T R"]
    other: Int[Array, "S R"]
    indexed = True

    def __call__(self, i, j):
        """Rows i of the one, rows j of the other."""
        *before, now = shared(self.one[i], self.other[j])
        return reduce(lambda pairs, met: pairs & ~met, before, now)
