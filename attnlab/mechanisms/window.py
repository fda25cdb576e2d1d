"""Local attention: a window around the query, or around a centre that it predicts."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace

import jax
import jax.numpy as jnp
import numpy as np

from attnlab.mechanisms.base import Mechanism
from attnlab.mechanisms.cost import Cost, cached, moved
from attnlab.mechanisms.softmax import Softmax
from attnlab.ops import chunks
from attnlab.ops.counts import check_counts
from attnlab.ops.mask import Causal, Window
from attnlab.ops.precision import accumulation_dtype, matmul, weighted_sum
from attnlab.ops.score import scaled_dot

# Keys are fetched for each query, of so many at a time, where all are so many times as many: of 144, 6.5 times as many,
# forward and backward take a fifth of the time of all pairs by heads of 16 and as long by heads of 64, of 96 longer.
MANY, ROWS = 6, 64


@dataclass(frozen=True)
class Local(Softmax):
    """y_t = softmax(score(q_t, k)) v over the keys with −right < t−j < left (local-m, Luong et al. 2015, section 3.2).

    A window counts the token itself: local-m of half-width w, keys t−w … t+w, is left = right = w+1. The same is
    truncated attention over frames of speech. Time O(T·(left+right)) where positions are known while tracing. By blocks
    it has no forward-mode derivatives.
    """

    left: int = 64
    right: int = 64
    block: int | None = field(default=64, kw_only=True)

    @property
    def pattern(self):
        """The window."""
        return Window(self.left, self.right)

    def _pairs(self, T, S):
        return T * min(S, self.left + self.right - 1)


@dataclass(frozen=True)
class LocalP(Mechanism):
    """y_t = Σ_j softmax(score(q_t, k_j)) exp(−(j−p_t)²/2σ²) v_j around p_t = S·sigmoid(tanh(q_t W_p)·v_p), σ = width/2.

    Softmax runs over the keys with |j−p_t| ≤ width; the Gaussian comes after it, and weights are not made to sum to
    one again (local-p, Luong et al. 2015, eq. 9-10). S is the number of keys that the query may see, so that padding
    changes nothing, and a token that reads the past has the same centre in every form. Keys stand at 0 … S−1.
    `score` and `length` are those of `Softmax`. Time O(T·width) where keys are many and the mask is causal or of keys
    alone; else O(T·S).
    """

    width: int = 10
    score: Callable = field(default=scaled_dot, kw_only=True)
    length: int = field(default=512, kw_only=True)
    biases = True
    unsteady = "a rounding moves its centre by S/4 roundings, and keys over the edge of its window"

    def __post_init__(self):
        check_counts(width=self.width)
        _ = self.within  # which refuses what it cannot be

    @property
    def within(self) -> Softmax:
        """The softmax of the keys within the window."""
        return Softmax(score=self.score, length=self.length)

    @property
    def learned(self):
        """The layer that predicts the centre, and what the score learns."""
        return {"w_p": ("K", "K"), "v_p": ("K",)} | self.within.learned

    def initial(self, key, K, V):
        """Of variance one over the width that is summed; the score's own."""
        one, other, last = jax.random.split(key, 3)
        centre = {
            "w_p": jax.random.normal(one, (K, K), jnp.float32),
            "v_p": jax.random.normal(other, (K,), jnp.float32),
        }
        return {name: x * K**-0.5 for name, x in centre.items()} | self.within.initial(last, K, V)

    def sized(self, length):
        """Itself, unless its score learns something for every position."""
        return replace(self, length=self.within.sized(length).length)

    def check(self, block):
        """As the softmax."""
        self.within.check(block)

    def sees_all(self, length):
        """Where the window is as wide as all, wherever its centre."""
        return self.width >= length

    def weights(self, q, k, allowed, *, i, j, bias=None, w_p, v_p, **learned):
        """[T S]: softmax within the window, times the Gaussian."""
        centre = self._centre(q, jnp.sum(allowed, axis=1, dtype=jnp.int32), w_p, v_p)
        return self._around(centre, q, k, allowed, i, j, bias, learned)

    def attend_all(self, q, k, v, mask, *, i, j, bias=None, w_p, v_p, **learned):
        """Every query against the keys that its window may reach, where they are few of all."""
        self.within.reach(j)
        S, reach = k.shape[0], self._fetched(k.shape[0])
        if reach == S or not _ordered(j) or (seen := _seen(mask, i, j)) is None:
            return super().attend_all(q, k, v, mask, i=i, j=j, bias=bias, w_p=w_p, v_p=v_p, **learned)

        def one(q, i, seen):
            q, i = q[None], i[None]
            centre = self._centre(q, seen[None], w_p, v_p)
            first = jnp.clip(jnp.floor(centre[0] - self.width).astype(jnp.int32), 0, S - reach)
            at = first + np.arange(reach, dtype=np.int32)
            return weighted_sum(self._around(centre, q, k[at], mask(i, at), i, at, bias, learned), v[at])[0]

        return chunks.map_chunks(jax.vmap(one), (q, i, seen), ROWS)

    def attend_causal(self, q, k, v, block, **rest):
        """The same, where no token is left out."""
        if block.plain and _ordered(block.i):
            return self.attend_all(q, k, v, Causal(), i=block.i, j=block.i, **rest)
        return super().attend_causal(q, k, v, block, **rest)

    def _fetched(self, S):
        """Keys that are fetched for a query: one more than its window holds at the most, or all."""
        reach = 2 * self.width + 2
        return reach if MANY * reach <= S else S

    def _centre(self, q, count, w_p, v_p):
        """[T]: the share of the keys that a query sees, `count`, at which it looks."""
        dtype = accumulation_dtype(q.dtype)
        hidden = jnp.tanh(matmul(q.astype(dtype), w_p.astype(dtype)))
        return count.astype(dtype) * jax.nn.sigmoid(hidden @ v_p.astype(dtype))

    def _around(self, centre, q, k, allowed, i, j, bias, learned):
        """[T S]: softmax within the window, times the Gaussian."""
        distance = jnp.asarray(j).astype(centre.dtype)[None, :] - centre[:, None]
        near = allowed & (jnp.abs(distance) <= self.width)
        shares = self.within.weights(q, k, near, i=i, j=j, bias=bias, **learned)
        return shares * jnp.exp(-2 * (distance / self.width) ** 2)

    def cost(self, T, S, K, V, block=None):
        """Two products of pairs, ten operations a pair for softmax and Gaussian, and the centres."""
        keys = S if block is not None else self._fetched(S)
        return Cost(
            flops=T * keys * (2 * K + 2 * V + 10) + 2 * T * K * (K + 1),
            bytes=moved(T, S, K, V),
            state_bytes=cached(S, K, V),
        )


def _ordered(j):
    """Whether keys are known to stand at 0, 1, 2, …"""
    return isinstance(j, np.ndarray) and np.array_equal(j, np.arange(len(j)))


def _seen(mask, i, j):
    """[T]: how many of the ordered keys each query sees, where that is told without all pairs; else None."""
    if type(mask) is Causal:
        return jnp.clip(jnp.asarray(i) + 1, 0, len(j))
    if (factors := mask.factors(i, j)) is None:
        return None
    return jnp.broadcast_to(jnp.sum(factors[1], dtype=jnp.int32), i.shape)
