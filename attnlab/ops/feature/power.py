"""Powers of the dot product."""

from dataclasses import dataclass
from functools import cache
from itertools import combinations_with_replacement
from math import comb, factorial, prod

import jax.numpy as jnp
import numpy as np

from attnlab.ops.feature.base import Feature, FeatureRows
from attnlab.ops.feature.elementwise import widen


@dataclass(frozen=True)
class Power(Feature):
    """φ(x) = the distinct products of p components of x' = x/K^¼, so that φ(q)·φ(k) = (q·k/√K)^p (Buckman et al. 2024).

    It has C(K + p − 1, p) features, half of the K² products for p = 2. The power p must be even, so that no weight
    is negative.

    Raises:
      ValueError: if the degree is odd or below 2.
    """

    degree: int = 2
    """The power p."""
    signed = True
    has_kernel = True

    def __post_init__(self):
        if self.degree < 2 or self.degree % 2:
            raise ValueError(f"degree={self.degree} must be an even number of 2 or more")

    def dim(self, K):
        """Returns C(K + p − 1, p)."""
        return comb(K + self.degree - 1, self.degree)

    def flops(self, K):
        """The scale, the products, and their scale."""
        return K + self.degree * self.dim(K)

    def query(self, x, i):
        """Returns the products, each times the root of the number of its orders."""
        x = widen(x) * x.shape[1] ** -0.25
        columns, roots = _products(x.shape[1], self.degree)
        return FeatureRows(jnp.prod(x[:, columns], axis=2) * roots.astype(x.dtype)[None])

    def kernel(self, q, k):
        """Returns q', k' and s -> s^p."""
        scale = q.shape[1] ** -0.25
        return widen(q) * scale, widen(k) * scale, lambda s: s**self.degree


@cache
def _products(K: int, degree: int) -> tuple[np.ndarray, np.ndarray]:
    """Returns the components of each product [M p], and the root of the number of its orders [M]."""
    columns = np.array(list(combinations_with_replacement(range(K), degree)), np.int32)
    orders = [
        factorial(degree) / prod(factorial(n) for n in np.unique(row, return_counts=True)[1].tolist())
        for row in columns
    ]
    return columns, np.sqrt(orders)
