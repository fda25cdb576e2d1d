"""Local attention: a window around the query, or around a predicted centre."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import final

import jax
import jax.numpy as jnp
import numpy as np

from attnlab.mechanisms.base import Traits
from attnlab.mechanisms.cost import Cost, cached, moved
from attnlab.mechanisms.pairwise import Pairwise
from attnlab.mechanisms.pattern_softmax import PatternSoftmax
from attnlab.mechanisms.softmax import Softmax
from attnlab.ops import chunks
from attnlab.ops.counts import check_counts
from attnlab.ops.mask import Causal, Window
from attnlab.ops.precision import accumulation_dtype, matmul, weighted_sum
from attnlab.ops.score import scaled_dot

# LocalP gathers the keys of each window, for ROWS queries at a time, if there are at least MANY times as many keys as a
# window holds. At 6.5 times (144 keys), forward and backward take a fifth of the time of all pairs for heads of width
# 16, and as long for heads of width 64. For 96 keys gathering is slower.
MANY, ROWS = 6, 64


@final
@dataclass(frozen=True)
class Local(PatternSoftmax):
    """Softmax attention over a window around the query (local-m).

    y_t = softmax(score(q_t, k)) v over the keys with −right < t−j < left

    Both sides count the token itself. Local-m of half-width w, with keys t−w … t+w, is left = right = w+1. Truncated
    attention over frames of speech is the same. Time is O(T·(left+right)) if positions are known while tracing. By
    blocks, forward-mode derivatives are not supported.

    Source: Luong et al. 2015, section 3.2.
    """

    left: int = 64
    """Number of keys up to and including the query's own position."""
    right: int = 64
    """Number of keys from the query's own position on. A causal mask removes the later ones."""
    block: int | None = field(default=64, kw_only=True)
    """Number of queries and of keys per block, or None to compute all pairs."""

    @property
    def pattern(self):
        """The window."""
        return Window(self.left, self.right)

    def _pairs(self, T, S):
        return T * min(S, self.left + self.right - 1)


@final
@dataclass(frozen=True)
class LocalP(Pairwise):
    """Softmax attention with a Gaussian around a predicted centre (local-p).

    y_t = Σ_j softmax(score(q_t, k_j)) exp(−(j−p_t)²/2σ²) v_j, p_t = S·sigmoid(tanh(q_t W_p)·v_p), σ = width/2

    The softmax runs over the keys with |j−p_t| ≤ width. The Gaussian is applied after it, and the weights are not
    normalised again. S is the number of keys that the query sees. Padding therefore changes nothing, and a causal token
    has the same centre in every form. Keys are expected at positions 0 … S−1. Time is O(T·width) if there are many keys
    and the mask is causal or depends only on keys, and O(T·S) otherwise.

    Raises:
        ValueError: if `width` or `length` is below 1, or for the reasons of `Softmax`.

    Source: Luong et al. 2015, eq. 9-10.
    """

    width: int = 10
    """Half-width of the window, in tokens."""
    score: Callable = field(default=scaled_dot, kw_only=True)
    """Score function, one of `attnlab.SCORES`."""
    length: int = field(default=512, kw_only=True)
    """Maximum number of positions of a score that learns something per position. Other scores ignore it."""
    softcap: float | None = field(default=None, kw_only=True)
    """Bound of the scores, as in `Softmax`, or None for no bound."""
    traits = Traits(
        bias=True,
        position_dependent=True,
        ill_conditioned="rounding errors grow by S/4 in the centre and move keys across the edge of the window",
    )

    def __post_init__(self):
        check_counts(width=self.width)
        _ = self.within  # raises if the softmax is invalid

    @property
    def within(self) -> Softmax:
        """Softmax over the keys in the window."""
        return Softmax(score=self.score, length=self.length, softcap=self.softcap)

    @property
    def learned(self):
        """Parameters of the layer that predicts the centre, and those of the score."""
        return {"w_p": ("K", "K"), "v_p": ("K",)} | self.within.learned

    def initial(self, key, K, V):
        """Returns normal values of variance 1/K for the centre's layer, and the score's own values."""
        one, other, last = jax.random.split(key, 3)
        centre = {
            "w_p": jax.random.normal(one, (K, K), jnp.float32),
            "v_p": jax.random.normal(other, (K,), jnp.float32),
        }
        return {name: x * K**-0.5 for name, x in centre.items()} | self.within.initial(last, K, V)

    def with_length(self, length):
        """Returns this mechanism with `length`, or itself if its score does not learn anything per position."""
        return replace(self, length=self.within.with_length(length).length)

    def check_positions(self, i):
        """Checks positions as the softmax does."""
        self.within.check_positions(i)

    def sees_all(self, length):
        """Returns whether the window covers all tokens wherever its centre is."""
        return self.width >= length

    def weights(self, q, k, allowed, *, i, j, bias=None, w_p, v_p, **learned):
        """Returns weights [T S]: softmax within the window, times the Gaussian."""
        centre = self._centre(q, jnp.sum(allowed, axis=1, dtype=jnp.int32), w_p, v_p)
        return self._around(centre, q, k, allowed, i, j, bias, learned)

    def attend_all(self, q, k, v, mask, *, i, j, bias=None, w_p, v_p, **learned):
        """Attends from every query to the keys that its window can reach, or to all keys if there are not many more."""
        self.within.check_positions(j)
        S, reach = k.shape[0], self._fetched(k.shape[0])
        if reach == S or not _ordered(j) or (counts := _visible_counts(mask, i, j)) is None:
            return super().attend_all(q, k, v, mask, i=i, j=j, bias=bias, w_p=w_p, v_p=v_p, **learned)

        def one(q, i, counts):
            q, i = q[None], i[None]
            centre = self._centre(q, counts[None], w_p, v_p)
            # The window moves with the centre, so a slice of fixed length is gathered around it.
            first = jnp.clip(jnp.floor(centre[0] - self.width).astype(jnp.int32), 0, S - reach)
            at = first + np.arange(reach, dtype=np.int32)
            return weighted_sum(self._around(centre, q, k[at], mask(i, at), i, at, bias, learned), v[at])[0]

        return chunks.map_chunks(jax.vmap(one), (q, i, counts), ROWS)

    def attend_causal(self, q, k, v, block, **rest):
        """Attends causally, with gathered keys if there is no padding and one segment."""
        if block.plain and _ordered(block.i):
            return self.attend_all(q, k, v, Causal(), i=block.i, j=block.i, **rest)
        return super().attend_causal(q, k, v, block, **rest)

    def _fetched(self, S):
        """Returns the number of keys to gather per query: one more than a window can hold, or all S."""
        reach = 2 * self.width + 2
        return reach if MANY * reach <= S else S

    def _centre(self, q, count, w_p, v_p):
        """Returns the centre of each query [T], as a share of the `count` keys that it sees."""
        dtype = accumulation_dtype(q.dtype)
        hidden = jnp.tanh(matmul(q.astype(dtype), w_p.astype(dtype)))
        return count.astype(dtype) * jax.nn.sigmoid(hidden @ v_p.astype(dtype))

    def _around(self, centre, q, k, allowed, i, j, bias, learned):
        """Returns weights [T S]: softmax within the window, times the Gaussian."""
        distance = jnp.asarray(j).astype(centre.dtype)[None, :] - centre[:, None]
        near = allowed & (jnp.abs(distance) <= self.width)
        shares = self.within.weights(q, k, near, i=i, j=j, bias=bias, **learned)
        return shares * jnp.exp(-2 * (distance / self.width) ** 2)

    def cost(self, T, S, K, V, block=None):
        """Counts two products per pair, ten operations per pair for softmax and Gaussian, and the centres."""
        keys = S if block is not None else self._fetched(S)
        return Cost(
            flops=T * keys * (2 * K + 2 * V + 10) + 2 * T * K * (K + 1),
            bytes=moved(T, S, K, V),
            state_bytes=cached(S, K, V),
        )


def _ordered(j):
    """Returns whether positions are known to be 0, 1, 2, …"""
    return isinstance(j, np.ndarray) and np.array_equal(j, np.arange(len(j)))


def _visible_counts(mask, i, j):
    """Returns the number of keys that each query sees [T], or None if that requires computing all pairs."""
    if type(mask) is Causal:
        return jnp.clip(jnp.asarray(i) + 1, 0, len(j))
    if (factors := mask.factors(i, j)) is None:
        return None
    return jnp.broadcast_to(jnp.sum(factors[1], dtype=jnp.int32), i.shape)
