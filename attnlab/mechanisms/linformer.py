"""Linformer."""

from dataclasses import dataclass, replace

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer

from attnlab.mechanisms.base import Mechanism
from attnlab.mechanisms.cost import Cost, moved
from attnlab.ops.counts import check_counts
from attnlab.ops.precision import accumulation_dtype, matmul
from attnlab.ops.score import scaled_dot
from attnlab.ops.softmax import masked_softmax


@dataclass(frozen=True)
class Linformer(Mechanism):
    """y = softmax(q (E k)ᵀ/√K) (F v): keys and values projected along positions to `rank` (Wang et al. 2020, eq. 7).

    E and F [rank length] are learned; the key at position j has column j. Bound to `length` positions: more keys, or
    a position known to lie beyond, raise ValueError, and a traced position beyond makes the output NaN; `sized` gives
    the same for another length. A forbidden key adds nothing to E k and F v; masks that differ by query raise
    NotImplementedError, since a projected key is many keys at once. O((T+S)·rank·(K+V)). Does not decode.
    """

    rank: int = 64
    length: int = 512

    def __post_init__(self):
        check_counts(rank=self.rank, length=self.length)

    @property
    def learned(self):
        """The projections along positions, of the keys and of the values."""
        return {"project_k": (self.rank, self.length), "project_v": (self.rank, self.length)}

    def initial(self, key, K, V):
        """Normal numbers of variance 1/length: a whole sequence of unit keys is projected to unit variance."""
        keys = jax.random.split(key, 2)
        draw = lambda key: jax.random.normal(key, (self.rank, self.length), jnp.float32) * self.length**-0.5
        return {name: draw(key) for name, key in zip(self.learned, keys, strict=True)}

    def sized(self, length):
        """The same for `length` positions; its learned arrays have other shapes."""
        return replace(self, length=length)

    def attend_all(self, q, k, v, mask, *, i, j, bias=None, project_k, project_v):
        """Every query against the projected keys."""
        if (factors := mask.factors(i, j)) is None:
            raise NotImplementedError(f"{self} cannot honour {mask}: a projected key is many keys at once")
        self._check(j)
        q, k, values = (x.astype(accumulation_dtype(x.dtype)) for x in (q, k, v))
        keys = matmul(self._columns(project_k, j, factors[1], k.dtype), k)
        scores = scaled_dot(q, keys)
        weights = masked_softmax(scores, jnp.ones(scores.shape, bool))
        mixed = matmul(self._columns(project_v, j, factors[1], values.dtype), values)
        return matmul(weights, mixed).astype(v.dtype)

    def cost(self, T, S, K, V, block=None):
        """The projections of keys and values, and attention to `rank` keys."""
        return Cost(
            flops=self.rank * (S * (2 * K + 2 * V) + T * (2 * K + 2 * V + 5)),
            bytes=moved(T, S, K, V) + 8 * self.rank * S,
            state_bytes=0,
        )

    def _check(self, j):
        if j.shape[0] > self.length:
            raise ValueError(f"{self}: {j.shape[0]} keys, but length={self.length}; use sized({j.shape[0]})")
        at = np.zeros(0) if isinstance(j, Tracer) else np.asarray(j)
        if (beyond := at[(at < 0) | (at >= self.length)]).size:
            raise ValueError(f"{self}: a key at position {beyond[0]}, and positions are 0 … {self.length - 1}")

    def _columns(self, projection, j, seen, dtype):
        """The columns of the keys that count, NaN beyond the length."""
        at = jnp.where(j < 0, self.length, j)
        columns = projection.astype(dtype).at[:, at].get(mode="fill", fill_value=jnp.nan)
        return jnp.where(seen[None, :], columns, 0)
