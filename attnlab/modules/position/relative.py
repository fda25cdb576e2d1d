"""Positions that add to scores what depends on the distance alone: ALiBi, T5's buckets, Shaw's vectors."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
from flax import nnx
from jaxtyping import PRNGKeyArray

from attnlab.modules.dense import fold_key
from attnlab.modules.parameter import NoDecay
from attnlab.modules.position.base import Position, PositionEncoding
from attnlab.ops.counts import check_counts
from attnlab.ops.position import alibi_slopes, clipped, relative_scores, relative_values, t5_buckets
from attnlab.ops.precision import accumulation_dtype
from attnlab.ops.tree import pytree, static


@dataclass(frozen=True)
class ALiBi(Position):
    """−m_h |i−j| added to the scores of head h, its slope m_h fixed (Press et al. 2022)."""

    biasing = True

    def bias(self, heads):
        """The slopes of all heads."""
        return Slopes(alibi_slopes(heads))


@pytree
@dataclass(frozen=True)
class Slopes:
    """ALiBi's bias: a slope a head."""

    slopes: Any

    def __call__(self, q, i, j):
        """−m |i−j|: [T S]."""
        distance = jnp.abs(jnp.asarray(i)[:, None] - jnp.asarray(j)[None, :])
        return -self.slopes.astype(accumulation_dtype(q.dtype)) * distance.astype(accumulation_dtype(q.dtype))


@dataclass(frozen=True)
class T5(Position):
    """A learned number for each bucket of distances and each head, added to scores (Raffel et al. 2020).

    `buckets` in all; those of far distances grow up to `distance`. An encoder tells the two sides apart; a decoder
    has all buckets for the past. The layers share the numbers.
    """

    buckets: int = 32
    distance: int = 128
    biasing = True
    inductive = False
    data_driven = True

    def __post_init__(self):
        if self.buckets < 4 or self.buckets % 4:
            raise ValueError(f"buckets={self.buckets} must be divisible by 4")
        if self.distance < self.buckets:
            raise ValueError(f"distance={self.distance} must be at least buckets={self.buckets}")

    def create(self, key, width, heads, layers=1, causal=False):
        """The table of numbers."""
        return T5Table(key, self, width, heads, causal)


class T5Table(PositionEncoding, nnx.Module):
    """The table of `T5`: [H, buckets]."""

    biasing = True

    def __init__(self, key: PRNGKeyArray, config: T5, width: int, heads: int, causal: bool):
        self.config, self.causal = config, causal
        self.numbers = NoDecay(jax.random.normal(key, (heads, config.buckets)) * width**-0.5)

    def bias(self, heads):
        """The numbers of all heads."""
        return Bucketed(self.numbers[...], self.config.buckets, self.config.distance, not self.causal)


@pytree
@dataclass(frozen=True)
class Bucketed:
    """T5's bias: a number a bucket and head."""

    numbers: Any
    buckets: int = static()
    distance: int = static()
    bidirectional: bool = static()

    def __call__(self, q, i, j):
        """The number of every pair's bucket: [T S]."""
        return self.numbers[t5_buckets(i, j, self.buckets, self.distance, self.bidirectional)]


@dataclass(frozen=True)
class Shaw(Position):
    """Learned vectors of the distance j−i, clipped to ±`clip`, that join keys and values (Shaw et al. 2018).

    e_tj = q_t·(k_j + r^K) / √K and y_t = Σ_j a_tj (v_j + r^V): y is affine in v, and the module adds the second term
    outside the map. A set for each head; the layers share them.
    """

    clip: int = 16
    biasing = True
    valued = True
    inductive = False
    data_driven = True

    def __post_init__(self):
        check_counts(clip=self.clip)

    def create(self, key, width, heads, layers=1, causal=False):
        """The vectors."""
        return ShawVectors(key, self, width, heads)


class ShawVectors(PositionEncoding, nnx.Module):
    """The vectors of `Shaw`: r^K and r^V, [H, 2·clip + 1, K] each."""

    biasing = True
    valued = True

    def __init__(self, key: PRNGKeyArray, config: Shaw, width: int, heads: int):
        self.config = config
        shape = heads, 2 * config.clip + 1, width // heads
        draw = lambda name: jax.random.normal(fold_key(key, name), shape) * (width // heads) ** -0.5
        self.keys, self.values = NoDecay(draw("keys")), NoDecay(draw("values"))

    def bias(self, heads):
        """The vectors of all heads."""
        return Vectors(self.keys[...], self.values[...], self.config.clip)


@pytree
@dataclass(frozen=True)
class Vectors:
    """Shaw's bias, and what joins the values."""

    keys: Any
    values: Any
    clip: int = static()

    def __call__(self, q, i, j):
        """q_t · r^K_{clip(j−i)} / √K: [T S]."""
        return relative_scores(q, self.keys, clipped(i, j, self.clip))

    def weighted_values(self, weights, i, j):
        """Σ_j a_tj r^V_{clip(j−i)}: [T V]."""
        return relative_values(weights, self.values, clipped(i, j, self.clip))
