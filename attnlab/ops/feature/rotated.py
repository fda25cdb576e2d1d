"""Rotary positions for linear attention."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from attnlab.ops.feature.wrapper import FeatureWrapper
from attnlab.ops.mask import ArrayOrNumpy


@runtime_checkable
class RotaryEncoding(Protocol):
    """Rotations of queries and keys by their positions."""

    @property
    def rotation_size(self) -> int:
        """Number of components that are rotated together, if norms are preserved; 0 otherwise."""
        ...

    def rotate(
        self, q: Float[Array, "T K"], k: Float[Array, "S K"], i: Int[ArrayOrNumpy, " T"], j: Int[ArrayOrNumpy, " S"]
    ) -> tuple[Float[Array, "T K"], Float[Array, "S K"]]:
        """Returns the queries at positions i and the keys at positions j, rotated."""
        ...


@dataclass(frozen=True)
class RotatedFeatures(FeatureWrapper):
    """`feature` with its rows rotated by their positions in the numerator, and not rotated in the denominator.

    φ(q_t)·ψ(k_j) then depends on the distance t−j in the numerator, and the denominator is that of `feature` (Su et al.
    2021, eq. 19). Weights may be negative and need not sum to one. They are large if the denominator is small. So
    outputs may overflow in half precision where those of `feature` do not.

    Raises:
      ValueError: when it is called, if there are fewer features than `position` rotates together.
    """

    position: RotaryEncoding = field(kw_only=True)
    """The rotary position: `position.rotate(q, k, i, j)` rotates components in groups of `position.rotation_size`.

    Features left over at the end are not rotated.
    """

    @property
    def signed(self):  # pyright: ignore[reportIncompatibleVariableOverride]
        """True for any map."""
        return True

    @property
    def position_dependent(self):  # pyright: ignore[reportIncompatibleVariableOverride]
        """True for any map."""
        return True

    def flops(self, K):
        """Returns the operations of the map, and three per feature for the rotation."""
        return self.feature.flops(K) + 3 * self.dim(K)

    def query(self, x, i, **learned):
        """Maps queries and rotates the features."""
        return self._turned(self.feature.query(x, i, **learned), i)

    def key(self, x, j, **learned):
        """Maps keys and rotates the features."""
        return self._turned(self.feature.key(x, j, **learned), j)

    def _turned(self, mapped, at):
        """Rotates the rows by their positions, and keeps the original rows for the denominator."""
        rows, by = mapped.rows, self.position.rotation_size
        if not (whole := rows.shape[1] - rows.shape[1] % by):
            raise ValueError(
                f"{self.position} rotates features in groups of {by}, but {self.feature} has {rows.shape[1]}"
            )
        # A rotation keeps norms and treats queries and keys alike, so both pass through as queries.
        turned, _ = self.position.rotate(rows[:, :whole], rows[:0, :whole], at, at[:0])
        return mapped._replace(rows=jnp.concatenate([turned, rows[:, whole:]], axis=1), denominator_rows=rows)
