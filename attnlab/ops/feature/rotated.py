"""Rotary positions for linear attention."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import jax.numpy as jnp

from attnlab.ops.feature.wrapper import FeatureWrapper


@dataclass(frozen=True)
class RotatedFeatures(FeatureWrapper):
    """`feature` with its rows turned by their places where they meet values, and not where they are counted.

    So φ(q_t)·ψ(k_j) tells the distance t−j in the numerator, and the denominator is as without (Su et al. 2021, eq.
    19). Weights may be negative, need not sum to one, and are large where features hardly meet: answers may overflow in
    half precision where those of the map do not. `position.turn(q, k, i, j)` turns components in groups of
    `position.rotates`; those that are left over at the end stay. Raises ValueError where all are.
    """

    position: Any = field(kw_only=True)

    @property
    def signed(self):  # pyright: ignore[reportIncompatibleVariableOverride]
        """Whatever the map."""
        return True

    @property
    def placed(self):  # pyright: ignore[reportIncompatibleVariableOverride]
        """Whatever the map."""
        return True

    def flops(self, K):
        """Those of the map, and three for each component that is turned."""
        return self.feature.flops(K) + 3 * self.dim(K)

    def query(self, x, i, **learned):
        """The map's, turned."""
        return self._turned(self.feature.query(x, i, **learned), i)

    def key(self, x, j, **learned):
        """The map's, turned."""
        return self._turned(self.feature.key(x, j, **learned), j)

    def _turned(self, mapped, at):
        rows, by = mapped.rows, self.position.rotates
        if not (whole := rows.shape[1] - rows.shape[1] % by):
            raise ValueError(f"{self.feature} has {rows.shape[1]} features, and {self.position} turns {by} together")
        # Lengths are kept: queries and keys are turned alike.
        turned, _ = self.position.rotate(rows[:, :whole], rows[:0, :whole], at, at[:0])
        return mapped._replace(rows=jnp.concatenate([turned, rows[:, whole:]], axis=1), counted=rows)
