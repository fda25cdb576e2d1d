"""Random features: a product that estimates the exponential of softmax."""

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

    2m features, of m Gaussian rows in W, by blocks of K that are orthogonal: the mean of φ(q)·φ(k) over seeds is
    exp(q·k/√K), and its variance falls with m. W is a function of `seed`, m and K alone.

    Known up to each row's largest feature, so that no exponent overflows; in float32 a feature below e^−87 of it counts
    as zero, and a query answers zero whose products with keys, so taken, sum to less than 2e-31. Normalised only.
    Raises ValueError for m below 1.
    """

    m: int = 64
    seed: int = 0
    scaled = True

    def __post_init__(self):
        check_counts(m=self.m)
        if not 0 <= self.seed < 2**32:
            raise ValueError(f"seed={self.seed} must be in 0 … 2³²−1")

    def dim(self, K):
        """2m."""
        return 2 * self.m

    def flops(self, K):
        """The product, the norm, and the difference from the largest."""
        return 2 * K * self.m + 3 * K + 3 * self.dim(K)

    def query(self, x, i):
        """exp(±W x' − |x'|²/2)/√(2m)."""
        x = widen(x) * x.shape[1] ** -0.25
        turned = matmul(x, jnp.asarray(directions(self.seed, self.m, x.shape[1]), x.dtype).T)
        size = jnp.sum(x * x, axis=1, keepdims=True) / 2 + math.log(2 * self.m) / 2
        return relative(jnp.concatenate([turned, -turned], axis=1) - size)


@lru_cache(maxsize=64)
def directions(seed: int, m: int, K: int) -> np.ndarray:
    """[m K]: Gaussian rows, orthogonal within every K of them (Choromanski et al. 2021, orthogonal random features).

    The rows of a block are a random rotation, each of the length of an independent Gaussian row: every row by itself
    is Gaussian. In float32, so that every precision sees the same numbers.
    """
    # numpy's, so that they are constants of a trace: a factorisation in every step of training would cost more.
    draw = np.random.default_rng([seed, m, K])
    blocks = [_rotation(draw.standard_normal((K, K))) for _ in range(-(-m // K))]
    lengths = np.linalg.norm(draw.standard_normal((m, K)), axis=1, keepdims=True)
    return (np.concatenate(blocks)[:m] * lengths).astype(np.float32)


def _rotation(gaussian: np.ndarray) -> np.ndarray:
    q, r = np.linalg.qr(gaussian)
    # Without the signs of the diagonal the rotation would not be uniform (Mezzadri 2007, section 5).
    return q * np.sign(np.diag(r))[None, :]
