"""The base class of feature maps."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from attnlab.documented import Documented
from attnlab.ops.mask import ArrayOrNumpy


class FeatureRows(NamedTuple):
    """Rows in feature space, with an optional scale: φ(x_t) = exp(scale_t) · rows_t.

    Only maps with exponentials return a scale, so that nothing overflows. Sums are then taken relative to the largest
    scale so far.
    """

    rows: Float[Array, "T M"]
    """The features [T M], relative to the scale."""
    scale: Float[Array, " T"] | None = None
    """Logarithm of each row's largest feature [T], or None for a scale of zero."""
    denominator_rows: Float[Array, "T M"] | None = None
    """Rows [T M] whose products the denominator sums, or None if they are `rows`."""


class Feature(metaclass=Documented):
    """A map φ of queries and ψ of keys, [T K] -> [T M], in whose space the product is the attention weight.

    Subclasses are frozen, hashable dataclasses without arrays. Rows are computed in float32 at least. In float16 the
    square of 300 is infinite, and exp(−24) is zero.

    Attributes:
      scaled: whether the map returns scales (see `FeatureRows`).
      signed: whether features may be negative.
      position_dependent: whether the rows themselves depend on positions.
      has_kernel: whether the map has a `kernel`.
    """

    scaled = False
    signed = False
    position_dependent = False
    has_kernel = False

    @property
    def line(self) -> str:
        """One line that describes this map in a list: the first line of its docstring."""
        return (self.__doc__ or "").strip().splitlines()[0]

    @property
    def learned(self) -> dict[str, tuple]:
        """Shapes of the learned arrays, one set per head: {name: shape}, with "K" for the width."""
        return {}

    def initial(self, key: Array, K: int) -> dict[str, Array]:
        """Returns initial values of the learned arrays.

        Args:
          key: a random key.
          K: width of queries and keys.

        Returns:
          {name: array}, one head.
        """
        return {}

    def dim(self, K: int) -> int:
        """Returns the number of features M for rows of width K."""
        raise NotImplementedError

    def flops(self, K: int) -> int:
        """Returns the floating-point operations per row, without exponentials."""
        return self.dim(K)

    def query(self, x: Float[Array, "T K"], i: Int[ArrayOrNumpy, " T"], **learned: Float[Array, "..."]) -> FeatureRows:
        """Maps queries.

        Args:
          x: queries [T K].
          i: their positions [T].
          **learned: the learned arrays of one head.

        Returns:
          φ(x), as a `FeatureRows`.
        """
        raise NotImplementedError

    def key(self, x: Float[Array, "S K"], j: Int[ArrayOrNumpy, " S"], **learned: Float[Array, "..."]) -> FeatureRows:
        """Maps keys by ψ, which is φ unless the map treats queries and keys differently.

        Args:
          x: keys [S K].
          j: their positions [S].
          **learned: the learned arrays of one head.

        Returns:
          ψ(x), as a `FeatureRows`.
        """
        return self.query(x, j, **learned)

    def kernel(
        self, q: Float[Array, "T K"], k: Float[Array, "S K"], **learned: Float[Array, "..."]
    ) -> tuple[Float[Array, "T N"], Float[Array, "S N"], Callable[[Array], Array]]:
        """Returns what computes the products φ(q_t)·ψ(k_j) without the features, for a map that has one.

        Args:
          q: queries [T K].
          k: keys [S K].
          **learned: the learned arrays of one head.

        Returns:
          Rows q' [T N], rows k' [S N] and an elementwise function f, with φ(q_t)·ψ(k_j) = f(q'_t·k'_j).

        Raises:
          NotImplementedError: if the map has no kernel.
        """
        raise NotImplementedError

    def aligned(self, i: Int[ArrayOrNumpy, " T"], j: Int[ArrayOrNumpy, " S"]) -> tuple[ArrayOrNumpy, ArrayOrNumpy]:
        """Returns positions of queries and keys shifted to the origin that the map expects.

        Args:
          i: positions of queries [T].
          j: positions of the keys that they meet [S].
        """
        return i, j

    def check(self, i: Int[ArrayOrNumpy, " T"]) -> None:
        """Checks known positions against the length to which the map is bound.

        Raises:
          ValueError: if a position is beyond it.
        """

    def check_length(self, length: int) -> None:
        """Checks a length against the length to which the map is bound.

        Raises:
          ValueError: if the map is bound to fewer than `length` positions.
        """

    def with_length(self, length: int) -> Feature:
        """Returns the map for `length` positions: itself, unless it is bound to a length."""
        return self


def relative(exponent: Float[Array, "T M"]) -> FeatureRows:
    """Returns the exponentials of each row relative to the largest, and the largest exponent as the scale.

    The scale has no gradient: it cancels where it is used.
    """
    peak = jax.lax.stop_gradient(jnp.max(exponent, axis=1, initial=-jnp.inf, keepdims=True))
    return FeatureRows(jnp.exp(exponent - peak), peak[:, 0])
