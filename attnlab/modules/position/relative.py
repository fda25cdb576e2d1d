"""Position encodings that add a function of the distance to the scores: ALiBi, T5's buckets, Shaw's vectors."""

from __future__ import annotations

from dataclasses import dataclass

import jax
import jax.numpy as jnp
from flax import nnx
from jaxtyping import Array, Float, PRNGKeyArray

from attnlab.modules.dense import fold_key
from attnlab.modules.parameter import NoDecay
from attnlab.modules.position.base import Position, PositionEncoding
from attnlab.ops.counts import check_counts
from attnlab.ops.position import alibi_slopes, clipped, relative_scores, relative_values, t5_buckets
from attnlab.ops.precision import accumulation_dtype
from attnlab.ops.tree import pytree, static


@dataclass(frozen=True)
class ALiBi(Position):
    """A bias −m_h |i−j| on the scores of head h, with a fixed slope m_h (Press et al. 2022)."""

    has_bias = True

    def bias(self, heads):
        """Return the biases of all heads."""
        return Slopes(alibi_slopes(heads))


@pytree
@dataclass(frozen=True)
class Slopes:
    """The bias of `ALiBi`."""

    slopes: Float[Array, "..."]
    """The slope m; [H] for all heads, a scalar for one."""

    def __call__(self, q, i, j):
        """Return −m |i−j|, [T S]."""
        distance = jnp.abs(jnp.asarray(i)[:, None] - jnp.asarray(j)[None, :])
        return -self.slopes.astype(accumulation_dtype(q.dtype)) * distance.astype(accumulation_dtype(q.dtype))


@dataclass(frozen=True)
class T5(Position):
    """A learned bias for each bucket of distances and each head, added to scores (Raffel et al. 2020).

    An encoder uses half of the buckets for each direction. A decoder uses all of them for the past. The layers share
    the biases.
    """

    buckets: int = 32
    """Number of buckets. It must be divisible by 4."""
    distance: int = 128
    """Distance up to which buckets grow logarithmically. All greater distances share the last bucket."""
    has_bias = True
    inductive = False
    data_driven = True

    def __post_init__(self):
        if self.buckets < 4 or self.buckets % 4:
            raise ValueError(f"buckets={self.buckets} must be divisible by 4")
        if self.distance < self.buckets:
            raise ValueError(f"distance={self.distance} must be at least buckets={self.buckets}")

    def create(self, key, width, heads, layers=1, causal=False):
        """Create the table of biases."""
        return T5Table(key, self, width, heads, causal)


class T5Table(PositionEncoding, nnx.Module):
    """The table of `T5`, [H, buckets]."""

    has_bias = True

    def __init__(self, key: PRNGKeyArray, config: T5, width: int, heads: int, causal: bool):
        self.config, self.causal = config, causal
        self.numbers = NoDecay(jax.random.normal(key, (heads, config.buckets)) * width**-0.5)

    def bias(self, heads):
        """Return the biases of all heads."""
        return Bucketed(self.numbers[...], self.config.buckets, self.config.distance, not self.causal)


@pytree
@dataclass(frozen=True)
class Bucketed:
    """The bias of `T5`."""

    numbers: Float[Array, "..."]
    """The bias of each bucket; [H, buckets] for all heads, [buckets] for one."""
    buckets: int = static()
    """Number of buckets."""
    distance: int = static()
    """Distance up to which buckets grow."""
    bidirectional: bool = static()
    """Whether the two directions have separate buckets."""

    def __call__(self, q, i, j):
        """Return the bias of each pair's bucket, [T S]."""
        return self.numbers[t5_buckets(i, j, self.buckets, self.distance, self.bidirectional)]


@dataclass(frozen=True)
class Shaw(Position):
    """Learned vectors of the distance j−i, clipped to ±`clip`, added to keys and values (Shaw et al. 2018).

    e_tj = q_t·(k_j + r^K) / √K and y_t = Σ_j a_tj (v_j + r^V)

    y is affine in v. The module adds the term of r^V outside the attention map. Each head has its own vectors, and the
    layers share them. In the paper each layer has its own too (section 4.1).
    """

    clip: int = 16
    """Largest distance with a separate vector."""
    has_bias = True
    has_values = True
    inductive = False
    data_driven = True

    def __post_init__(self):
        check_counts(clip=self.clip)

    def create(self, key, width, heads, layers=1, causal=False):
        """Create the vectors."""
        return ShawVectors(key, self, width, heads)


class ShawVectors(PositionEncoding, nnx.Module):
    """The vectors r^K and r^V of `Shaw`, each [H, 2·clip + 1, K]."""

    has_bias = True
    has_values = True

    def __init__(self, key: PRNGKeyArray, config: Shaw, width: int, heads: int):
        self.config = config
        shape = heads, 2 * config.clip + 1, width // heads
        draw = lambda name: jax.random.normal(fold_key(key, name), shape) * (width // heads) ** -0.5
        self.keys, self.values = NoDecay(draw("keys")), NoDecay(draw("values"))

    def bias(self, heads):
        """Return the biases of all heads."""
        return Vectors(self.keys[...], self.values[...], self.config.clip)


@pytree
@dataclass(frozen=True)
class Vectors:
    """The bias of `Shaw`, and its term of the values."""

    keys: Float[Array, "..."]
    """r^K; [H, 2·clip + 1, K] for all heads, without H for one."""
    values: Float[Array, "..."]
    """r^V, of the same shape."""
    clip: int = static()
    """Largest distance with a separate vector."""

    def __call__(self, q, i, j):
        """Return q_t · r^K_{clip(j−i)} / √K, [T S]."""
        return relative_scores(q, self.keys, clipped(i, j, self.clip))

    def weighted_values(self, weights, i, j):
        """Return Σ_j a_tj r^V_{clip(j−i)}, [T V]."""
        return relative_values(weights, self.values, clipped(i, j, self.clip))
