"""Feature maps that depend on positions."""

from __future__ import annotations

from dataclasses import dataclass, replace

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer

from attnlab.ops.counts import check_counts
from attnlab.ops.feature.base import Feature, FeatureRows
from attnlab.ops.feature.elementwise import widen


@dataclass(frozen=True)
class Cosformer(Feature):
    """φ(x_i) = max(x, 0) · [cos(πi/2M) ; sin(πi/2M)], M the `length` (Qin et al. 2022, cosFormer).

    It has 2K features. Weights fall with the distance: φ(q_i)·φ(k_j) = max(q, 0)·max(k, 0) · cos(π(i−j)/2M). The cosine
    is positive within M. Weights may all be zero.

    The map is bound to its length: positions are 0 … M−1. A known position outside of it raises ValueError. A traced
    one makes the output of a query NaN, and gives a key no weight.

    Raises:
      ValueError: if `length` is below 1.
    """

    length: int = 512
    """M, the number of positions."""
    position_dependent = True

    def __post_init__(self):
        check_counts(length=self.length)

    def dim(self, K):
        """Returns 2K."""
        return 2 * K

    def flops(self, K):
        """A comparison and two products per component."""
        return 3 * K

    def query(self, x, i):
        """Returns max(x, 0) times the cosine and the sine of its position; NaN out of range."""
        return FeatureRows(self._turned(x, i, jnp.nan))

    def key(self, x, j):
        """Returns the same; zero out of range."""
        return FeatureRows(self._turned(x, j, 0))

    def aligned(self, i, j):
        """Shifts known positions so that the smallest is 0: only differences matter."""
        if isinstance(i, Tracer) or isinstance(j, Tracer):
            return i, j
        first = min((int(x.min()) for x in (i, j) if x.size), default=0)
        return i - first, j - first

    def check(self, i):
        """Checks that known positions are in 0 … M−1."""
        if isinstance(i, Tracer) or not i.size:
            return
        if (first := int(i.min())) < 0:
            raise ValueError(f"{self} supports positions 0 … {self.length - 1}, got {first}")
        self.check_length(int(i.max()) + 1)

    def check_length(self, length):
        """Checks that `length` is at most M."""
        if length > self.length:
            raise ValueError(
                f"{self} supports positions 0 … {self.length - 1}, got {length - 1}; use length={length} or more"
            )

    def with_length(self, length):
        """Returns the map with M = `length`."""
        return replace(self, length=length)

    def _turned(self, x, i, beyond):
        """Returns max(x, 0) times the cosine and the sine; `beyond` for positions out of range."""
        x, i = jax.nn.relu(widen(x)), jnp.asarray(i)
        angle = (np.pi / 2 / self.length) * i.astype(x.dtype)[:, None]
        rows = jnp.concatenate([x * jnp.cos(angle), x * jnp.sin(angle)], axis=1)
        inside = (i >= 0) & (i < self.length)
        return jnp.where(inside[:, None], rows, beyond)
