"""Linformer."""

from dataclasses import dataclass, replace
from typing import final

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer

from attnlab.mechanisms.base import Traits
from attnlab.mechanisms.cost import Cost, moved
from attnlab.mechanisms.whole import Whole
from attnlab.ops.counts import check_counts
from attnlab.ops.precision import accumulation_dtype, matmul
from attnlab.ops.score import scaled_dot
from attnlab.ops.softmax import masked_softmax


@final
@dataclass(frozen=True)
class Linformer(Whole):
    """Softmax attention to keys and values that are projected along positions (Linformer).

    y = softmax(q (E k)ᵀ/√K) (F v)

    E and F [rank length] are learned. The key at position j uses column j. A forbidden key adds nothing to E k and F v.
    Masks that differ by query are not supported, because a projected key combines many keys. Time is
    O((T+S)·rank·(K+V)). Linformer cannot decode.

    A traced position beyond `length` makes the output NaN. `with_length` returns the mechanism for another length.

    Raises:
        ValueError: if `rank` or `length` is below 1, if there are more than `length` keys, or if a position is known to
            lie beyond.
        NotImplementedError: if the mask differs by query.

    Source: Wang et al. 2020, eq. 7.
    """

    rank: int = 64
    """Number of projected keys and values."""
    length: int = 512
    """Maximum number of positions."""
    traits = Traits(decodes=False, position_dependent=True)

    def __post_init__(self):
        check_counts(rank=self.rank, length=self.length)

    @property
    def learned(self):
        """Projections of keys and values along positions."""
        return {"project_k": (self.rank, self.length), "project_v": (self.rank, self.length)}

    def initial(self, key, K, V):
        """Returns normal values of variance 1/length. They project a full sequence of unit keys to unit variance."""
        keys = jax.random.split(key, 2)
        draw = lambda key: jax.random.normal(key, (self.rank, self.length), jnp.float32) * self.length**-0.5
        return {name: draw(key) for name, key in zip(self.learned, keys, strict=True)}

    def with_length(self, length):
        """Returns this mechanism for `length` positions. Its learned arrays have other shapes."""
        return replace(self, length=length)

    def attend_all(self, q, k, v, mask, *, i, j, bias=None, project_k, project_v):
        """Attends from every query to the projected keys."""
        if (factors := mask.factors(i, j)) is None:
            raise NotImplementedError(f"{self} does not support {mask}: a projected key combines many keys")
        self._check(j)
        q, k, values = (x.astype(accumulation_dtype(x.dtype)) for x in (q, k, v))
        keys = matmul(self._columns(project_k, j, factors[1], k.dtype), k)
        scores = scaled_dot(q, keys)
        weights = masked_softmax(scores, jnp.ones(scores.shape, bool))
        mixed = matmul(self._columns(project_v, j, factors[1], values.dtype), values)
        return matmul(weights, mixed).astype(v.dtype)

    def cost(self, T, S, K, V, block=None):
        """Counts the projections of keys and values, and attention to `rank` keys."""
        return Cost(
            flops=self.rank * (S * (2 * K + 2 * V) + T * (2 * K + 2 * V + 5)),
            bytes=moved(T, S, K, V) + 8 * self.rank * S,
            state_bytes=0,
        )

    def _check(self, j):
        """Raises ValueError if there are too many keys, or if a position is known to lie outside 0 … length−1."""
        if j.shape[0] > self.length:
            raise ValueError(f"{self} supports {self.length} keys, got {j.shape[0]}; use with_length({j.shape[0]})")
        at = np.zeros(0) if isinstance(j, Tracer) else np.asarray(j)
        if (beyond := at[(at < 0) | (at >= self.length)]).size:
            raise ValueError(f"{self} supports positions 0 … {self.length - 1}, got a key at position {beyond[0]}")

    def _columns(self, projection, j, visible, dtype):
        """Returns the columns of the keys' positions: zero for keys that are not visible, NaN beyond the length."""
        at = jnp.where(j < 0, self.length, j)
        columns = projection.astype(dtype).at[:, at].get(mode="fill", fill_value=jnp.nan)
        return jnp.where(visible[None, :], columns, 0)
