"""Synthesizer."""

from dataclasses import dataclass, replace
from typing import final

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer

from attnlab.mechanisms.base import Traits
from attnlab.mechanisms.cost import Cost, cached, moved
from attnlab.mechanisms.pairwise import Pairwise
from attnlab.ops.counts import check_counts
from attnlab.ops.precision import accumulation_dtype, matmul
from attnlab.ops.softmax import masked_softmax


@final
@dataclass(frozen=True)
class Synthesizer(Pairwise):
    """Softmax attention whose scores do not depend on keys (Synthesizer).

    y = softmax(ReLU(q W + b) U + c) v, where column j of the scores is that of position j (dense Synthesizer)

    Any mask is supported, and any bias is added to the scores. Time is O(T·S). The decoding state is a cache of keys
    and values. A traced position beyond `length` makes the output NaN. `with_length` returns the mechanism for another
    length.

    Raises:
        ValueError: if `length` is below 1, if a sequence is longer, or if a position is known to lie beyond.

    Source: Tay et al. 2021.
    """

    length: int = 512
    """Maximum number of positions."""
    fixed: bool = False
    """True for the random Synthesizer: the score of a pair is a learned number [i, j], whatever the tokens are."""
    traits = Traits(bias=True, position_dependent=True)

    def __post_init__(self):
        check_counts(length=self.length)

    @property
    def learned(self):
        """Parameters of the two layers, or the table of scores."""
        if self.fixed:
            return {"table": (self.length, self.length)}
        return {"w": ("K", "K"), "b": ("K",), "u": ("K", self.length), "c": (self.length,)}

    def initial(self, key, K, V):
        """Returns initial values that give scores of about unit variance.

        Layers are normal by fan-in, with a factor 2 after the ReLU (He et al. 2015). Offsets are zero.
        """
        one, other = jax.random.split(key)
        if self.fixed:
            return {"table": jax.random.normal(one, (self.length, self.length), jnp.float32)}
        w = jax.random.normal(one, (K, K), jnp.float32) * K**-0.5
        u = jax.random.normal(other, (K, self.length), jnp.float32) * (2 / K) ** 0.5
        return {"w": w, "b": jnp.zeros(K, jnp.float32), "u": u, "c": jnp.zeros(self.length, jnp.float32)}

    def with_length(self, length):
        """Returns this mechanism for `length` positions. Its learned arrays have other shapes."""
        return replace(self, length=length)

    def weights(self, q, k, allowed, *, i, j, bias=None, **learned):
        """Returns weights [T S] in at least float32. Rows sum to one, or to zero if no key is allowed."""
        self._check(j, allowed, 0)
        if self.fixed:
            self._check(i, allowed, 1)
            scores = _table(i, j, **learned)
        else:
            scores = _layers(q.astype(accumulation_dtype(q.dtype)), j, **learned)
        return masked_softmax(scores if bias is None else scores + bias(q, i, j).astype(scores.dtype), allowed)

    def init_memory(self, length, K, V, dtype):
        """Returns an empty cache. Raises ValueError if it is longer than the maximum number of positions."""
        self.check_length(length)
        return super().init_memory(length, K, V, dtype)

    def attend_causal(self, q, k, v, block, *, bias=None, **learned):
        """Attends causally over a whole sequence. Raises ValueError if it exceeds the maximum number of positions."""
        self.check_length(q.shape[0])
        return super().attend_causal(q, k, v, block, bias=bias, **learned)

    def cost(self, T, S, K, V, block=None):
        """Counts the scores, the softmax and one product with v. Bytes include the parameters that are read."""
        learned = T * S if self.fixed else (K + 1) * (K + S)
        return Cost(
            flops=T * S * (2 * V + 5) + (0 if self.fixed else 2 * T * K * (K + S)),
            bytes=moved(T, S, K, V) + 4 * learned,
            state_bytes=cached(S, K, V),
        )

    def check_length(self, length):
        """Raises ValueError if `length` exceeds the maximum number of positions."""
        if length > self.length:
            raise ValueError(f"{self} supports {self.length} tokens, got {length}; use with_length({length})")

    def _check(self, place, allowed, axis):
        """Raises ValueError if a position is known to lie beyond the maximum.

        Positions that follow from the shapes are all checked. Positions that are given are checked only if a pair of
        theirs is allowed.
        """
        if not isinstance(place, np.ndarray):
            if isinstance(place, Tracer) or isinstance(allowed, Tracer):
                return
            place = np.asarray(place)[np.asarray(allowed).any(axis=axis)]
        if np.any((place < 0) | (place >= self.length)):
            raise ValueError(f"{self} supports positions 0 … {self.length - 1}, got {place.min()} … {place.max()}")


def _layers(q, j, w, b, u, c):
    """Returns the scores [T S] of the positions j, from the queries only. They are NaN beyond the length."""
    w, b, u, c = (x.astype(q.dtype) for x in (w, b, u, c))
    at, within = _places(j, c.shape[0])
    scores = matmul(jax.nn.relu(matmul(q, w) + b[None, :]), u[:, at]) + c[at][None, :]
    # NaN is not set in u, because a masked pair would still carry it into the gradient of the products.
    return jnp.where(within[None, :], scores, jnp.nan)


def _table(i, j, table):
    """Returns the scores [T S] of the pairs from the table. They are NaN beyond the length."""
    (rows, valid_rows), (columns, valid_columns) = (_places(each, table.shape[0]) for each in (i, j))
    scores = table[rows[:, None], columns[None, :]].astype(accumulation_dtype(table.dtype))
    return jnp.where(valid_rows[:, None] & valid_columns[None, :], scores, jnp.nan)


def _places(place, length):
    """Returns positions that are safe to look up, and which of them are valid."""
    within = (place >= 0) & (place < length)
    return jnp.where(within, place, 0), within
