"""Synthesizer."""

from dataclasses import dataclass, replace

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer

from attnlab.mechanisms.base import Mechanism
from attnlab.mechanisms.cost import Cost, cached, moved
from attnlab.ops.counts import check_counts
from attnlab.ops.precision import accumulation_dtype, matmul
from attnlab.ops.softmax import masked_softmax


@dataclass(frozen=True)
class Synthesizer(Mechanism):
    """y = softmax(ReLU(q W + b) U + c) v: scores without keys, column j for position j (Tay et al. 2021, dense).

    `fixed` True is the random synthesizer: the score of a pair is a learned number [i, j], whatever the tokens. Bound
    to `length` positions: longer sequences, and positions known to lie beyond, raise ValueError, and a traced position
    beyond makes the output NaN; `sized` gives the same for another length. Any mask, and any bias added to the scores.
    O(T·S); its state is a cache.
    """

    length: int = 512
    fixed: bool = False
    biases = True

    def __post_init__(self):
        check_counts(length=self.length)

    @property
    def learned(self):
        """Two layers, or the table."""
        if self.fixed:
            return {"table": (self.length, self.length)}
        return {"w": ("K", "K"), "b": ("K",), "u": ("K", self.length), "c": (self.length,)}

    def initial(self, key, K, V):
        """Scores of about unit variance: normal layers by fan-in (He et al. 2015 before the ReLU's half), no offset."""
        one, other = jax.random.split(key)
        if self.fixed:
            return {"table": jax.random.normal(one, (self.length, self.length), jnp.float32)}
        w = jax.random.normal(one, (K, K), jnp.float32) * K**-0.5
        u = jax.random.normal(other, (K, self.length), jnp.float32) * (2 / K) ** 0.5
        return {"w": w, "b": jnp.zeros(K, jnp.float32), "u": u, "c": jnp.zeros(self.length, jnp.float32)}

    def sized(self, length):
        """The same for `length` positions; its learned arrays have other shapes."""
        return replace(self, length=length)

    def weights(self, q, k, allowed, *, i, j, bias=None, **learned):
        """[T S], rows summing to one (to zero where nothing is allowed), in float32 at least."""
        self._check(j, allowed, 0)
        if self.fixed:
            self._check(i, allowed, 1)
            scores = _table(i, j, **learned)
        else:
            scores = _layers(q.astype(accumulation_dtype(q.dtype)), j, **learned)
        return masked_softmax(scores if bias is None else scores + bias(q, i, j).astype(scores.dtype), allowed)

    def init_memory(self, length, K, V, dtype):
        """A cache, no longer than the positions known."""
        self.fit(length)
        return super().init_memory(length, K, V, dtype)

    def attend_causal(self, q, k, v, block, *, bias=None, **learned):
        """A whole sequence, no longer than the positions known."""
        self.fit(q.shape[0])
        return super().attend_causal(q, k, v, block, bias=bias, **learned)

    def cost(self, T, S, K, V, block=None):
        """The scores, softmax, and one product with v; of what is learned, what T queries and S keys read."""
        learned = T * S if self.fixed else (K + 1) * (K + S)
        return Cost(
            flops=T * S * (2 * V + 5) + (0 if self.fixed else 2 * T * K * (K + S)),
            bytes=moved(T, S, K, V) + 4 * learned,
            state_bytes=cached(S, K, V),
        )

    def fit(self, length):
        """Raise ValueError where there are fewer positions."""
        if length > self.length:
            raise ValueError(f"{self}: {length} tokens, but length={self.length}; use sized({length})")

    def _check(self, place, allowed, axis):
        """Raise where a position is known to lie beyond: one that the shapes give, or one given of a pair allowed."""
        if not isinstance(place, np.ndarray):
            if isinstance(place, Tracer) or isinstance(allowed, Tracer):
                return
            place = np.asarray(place)[np.asarray(allowed).any(axis=axis)]
        if np.any((place < 0) | (place >= self.length)):
            raise ValueError(f"{self}: positions {place.min()} … {place.max()}, but length={self.length}")


def _layers(q, j, w, b, u, c):
    """[T S]: the scores of the positions j, from the query alone; NaN beyond the length."""
    w, b, u, c = (x.astype(q.dtype) for x in (w, b, u, c))
    at, within = _places(j, c.shape[0])
    scores = matmul(jax.nn.relu(matmul(q, w) + b[None, :]), u[:, at]) + c[at][None, :]
    # Not NaN in u: a pair that is masked would still carry it into the gradient of the products.
    return jnp.where(within[None, :], scores, jnp.nan)


def _table(i, j, table):
    """[T S]: the numbers of the pairs; NaN beyond the length."""
    (rows, along), (columns, across) = (_places(each, table.shape[0]) for each in (i, j))
    scores = table[rows[:, None], columns[None, :]].astype(accumulation_dtype(table.dtype))
    return jnp.where(along[:, None] & across[None, :], scores, jnp.nan)


def _places(place, length):
    """Places to look up, and which of them there are."""
    within = (place >= 0) & (place < length)
    return jnp.where(within, place, 0), within
