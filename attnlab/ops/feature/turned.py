"""Rotary positions for linear attention."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import jax.numpy as jnp
from jaxtyping import Array, Float

from attnlab.ops.feature.around import Around
from attnlab.ops.feature.base import Mapped


@dataclass(frozen=True)
class Turned(Around):
    """`feature` with its rows turned by their positions where they meet values, and not where they are counted.

    So φ(q_t)·ψ(k_j) tells the distance t−j in the numerator, and the denominator stays a sum of what is not negative
    (Su et al. 2021, eq. 19). Weights may be negative, and need not sum to one. `turn(q, k, i, j)` turns components in
    groups of `by`; those that are left over at the end stay.
    """

    turn: Callable = lambda q, k, i, j: (q, k)
    by: int = 2

    def flops(self, K):
        """Those of the map, and three for each component that is turned."""
        return self.feature.flops(K) + 3 * self.dim(K)

    def query(self, x, i, **learned):
        """The map's, turned."""
        mapped = self.feature.query(x, i, **learned)
        return self._both(mapped, lambda rows: self.turn(rows, rows[:0], i, i[:0])[0])

    def key(self, x, j, **learned):
        """The map's, turned."""
        mapped = self.feature.key(x, j, **learned)
        return self._both(mapped, lambda rows: self.turn(rows[:0], rows, j[:0], j)[1])

    def _both(self, mapped: Mapped, turn: Callable[[Float[Array, "T N"]], Float[Array, "T N"]]) -> Mapped:
        rows = mapped.rows
        whole = rows.shape[1] - rows.shape[1] % self.by
        turned = jnp.concatenate([turn(rows[:, :whole]), rows[:, whole:]], axis=1)
        return mapped._replace(rows=turned, counted=rows)
