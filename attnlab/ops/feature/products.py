"""Feature maps that are products of components."""

from dataclasses import dataclass

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from attnlab.ops.counts import check_counts
from attnlab.ops.feature.base import Feature, FeatureRows
from attnlab.ops.feature.elementwise import widen


def square(x: Float[Array, "T K"]) -> Float[Array, "T M"]:
    """Returns all products of two components, M = K², so that square(q)·square(k) = (q·k)²."""
    return (x[:, :, None] * x[:, None, :]).reshape(x.shape[0], x.shape[1] ** 2)


@dataclass(frozen=True)
class Taylor(Feature):
    """φ(x) = [1, x', x' ⊗ x'/√2], x' = x/K^¼: softmax's exponential to second order (Arora et al. 2024, Based).

    It has 1 + K + K² features. φ(q)·φ(k) = 1 + s + s²/2 with s = q·k/√K. This weight is at least 1/2.
    """

    signed = True
    has_kernel = True

    def dim(self, K):
        """Returns 1 + K + K²."""
        return 1 + K + K * K

    def flops(self, K):
        """The scale, the products, and their scale."""
        return K + 2 * K * K

    def query(self, x, i):
        """Returns [1, x', x' ⊗ x'/√2]."""
        x = self._scaled(x)
        return FeatureRows(jnp.concatenate([jnp.ones_like(x[:, :1]), x, square(x) * 0.5**0.5], axis=1))

    def kernel(self, q, k):
        """Returns q', k' and s -> 1 + s + s²/2."""
        return self._scaled(q), self._scaled(k), lambda s: 1 + s + s * s / 2

    def _scaled(self, x):
        """Returns x' = x/K^¼."""
        return widen(x) * x.shape[1] ** -0.25


@dataclass(frozen=True)
class Dpfp(Feature):
    """φ(x) = r ⊙ roll(r, n) for n = 1…ν, r = [max(x, 0) ; max(−x, 0)] (Schlag et al. 2021, eq. 37-38).

    It has 2Kν features, none negative. All are zero if no two components of r that are paired are both positive.

    Raises:
      ValueError: if ν is below 1.
    """

    nu: int = 1
    """ν, the number of shifts."""

    def __post_init__(self):
        check_counts(nu=self.nu)

    def dim(self, K):
        """Returns 2Kν."""
        return 2 * K * self.nu

    def flops(self, K):
        """Two comparisons and the products."""
        return 3 * K + self.dim(K)

    def query(self, x, i):
        """Returns r ⊙ roll(r, n) for n = 1…ν, concatenated."""
        x = widen(x)
        r = jax.nn.relu(jnp.concatenate([x, -x], axis=1))
        return FeatureRows(jnp.concatenate([r * jnp.roll(r, n, axis=1) for n in range(1, self.nu + 1)], axis=1))
