"""Random features, whose product estimates the exponential of softmax."""

import math
from dataclasses import dataclass
from functools import lru_cache

import jax.numpy as jnp
import numpy as np

from attnlab.ops.counts import check_counts
from attnlab.ops.feature.base import Feature, relative
from attnlab.ops.feature.elementwise import widen
from attnlab.ops.precision import matmul


@dataclass(frozen=True)
class Favor(Feature):
    """φ(x) = exp(−|x'|²/2)/√2m · [exp(W x') ; exp(−W x')], x' = x/K^¼ (Choromanski et al. 2021, lemma 1: FAVOR+).

    It has 2m features. W has m Gaussian rows, orthogonal within blocks of K rows, and depends only on `seed`, m and K.
    The mean of φ(q)·φ(k) over seeds is exp(q·k/√K), and its variance falls with m.

    This is the second form of the lemma, whose variance is lower. The authors' code has the first: the m features exp(W
    x' − |x'|²/2)/√m. It adds a small number to each of them (0.0001 in JAX, 0.000001 in TensorFlow), so that no
    denominator is zero. Here nothing is added.

    Features are relative to the largest of their row, so that no exponent overflows. In float32 a feature below e^−87
    times the largest is zero. If the products of a query with its keys, so computed, sum to less than 2e-31, its output
    is zero. The map works only with normalised attention.

    Raises:
      ValueError: if m is below 1, or the seed is not in 0 … 2³²−1.
    """

    m: int = 64
    """Number of rows in W; there are 2m features."""
    seed: int = 0
    """Seed of W."""
    scaled = True

    def __post_init__(self):
        check_counts(m=self.m)
        if not 0 <= self.seed < 2**32:
            raise ValueError(f"seed={self.seed} must be in 0 … 2³²−1")

    def dim(self, K):
        """Returns 2m."""
        return 2 * self.m

    def flops(self, K):
        """The product, the norm, and the difference from the largest."""
        return 2 * K * self.m + 3 * K + 3 * self.dim(K)

    def query(self, x, i):
        """Returns exp(±W x' − |x'|²/2)/√(2m), relative to each row's largest."""
        x = widen(x) * x.shape[1] ** -0.25
        turned = matmul(x, jnp.asarray(directions(self.seed, self.m, x.shape[1]), x.dtype).T)
        size = jnp.sum(x * x, axis=1, keepdims=True) / 2 + math.log(2 * self.m) / 2
        return relative(jnp.concatenate([turned, -turned], axis=1) - size)


@lru_cache(maxsize=64)
def directions(seed: int, m: int, K: int) -> np.ndarray:
    """Draws W [m K]: Gaussian rows, orthogonal within every K of them.

    The rows of a block are those of a random rotation. Each gets the length of an independent Gaussian row, so that
    every row by itself is Gaussian. The result is float32, so that every precision uses the same numbers.

    Args:
      seed: seed of numpy's generator.
      m: number of rows.
      K: width.

    Source: Choromanski et al. 2021, orthogonal random features.
    """
    # numpy makes them constants of the trace. With jax, every training step would repeat the QR factorisation.
    draw = np.random.default_rng([seed, m, K])
    blocks = [_rotation(draw.standard_normal((K, K))) for _ in range(-(-m // K))]
    lengths = np.linalg.norm(draw.standard_normal((m, K)), axis=1, keepdims=True)
    return (np.concatenate(blocks)[:m] * lengths).astype(np.float32)


def _rotation(gaussian: np.ndarray) -> np.ndarray:
    """Turns a Gaussian matrix into a uniformly distributed rotation or reflection."""
    q, r = np.linalg.qr(gaussian)
    # Without the signs of the diagonal the distribution would not be uniform (Mezzadri 2007, section 5).
    return q * np.sign(np.diag(r))[None, :]
