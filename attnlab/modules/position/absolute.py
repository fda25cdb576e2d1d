"""Positions added to the input: sines and cosines, and a learned table."""

from __future__ import annotations

from dataclasses import dataclass

import jax
import jax.numpy as jnp
from flax import nnx
from jaxtyping import PRNGKeyArray

from attnlab.modules.parameter import NoDecay
from attnlab.modules.position.base import Position, PositionEncoding
from attnlab.ops.counts import check_counts
from attnlab.ops.lookup import lookup
from attnlab.ops.position import sinusoidal

# Learned vectors start level with the sinusoid, whose squares sum to half the width.
LEVEL = 0.5**0.5


@dataclass(frozen=True)
class Sinusoidal(Position):
    """Sines and cosines added to the input (Vaswani et al. 2017, section 3.5)."""

    def check(self, width, heads):
        """The width must be even."""
        if width % 2:
            raise ValueError(f"model.width={width} must be even for sinusoidal positions")

    def add(self, x, i, table=None):
        """The input x + p_i."""
        return x + sinusoidal(i, x.shape[1], x.dtype)


@dataclass(frozen=True)
class Learned(Position):
    """A learned vector for each of `length` positions, added to the input (Gehring et al. 2017, section 3.1).

    The vectors start normal with standard deviation `std`; None is √½, level with sines and cosines. Next to embeddings
    that are not scaled it is 0.02 (Devlin et al. 2019). A longer sequence raises ValueError; in a traced loop, a
    position beyond the end answers NaN.
    """

    length: int = 512
    std: float | None = None
    inductive = False
    data_driven = True
    parameter_efficient = False

    def __post_init__(self):
        check_counts(length=self.length)
        if self.std is not None and not 0 < self.std < float("inf"):
            raise ValueError(f"std={self.std} must be a finite number above 0, or none")

    def max_length(self, dtype):
        """The length of the table."""
        return self.length

    def create(self, key, width, heads, layers=1, causal=False):
        """The table."""
        return LearnedTable(key, self, width)


class LearnedTable(PositionEncoding, nnx.Module):
    """The table of `Learned`: [length, D]."""

    def __init__(self, key: PRNGKeyArray, config: Learned, width: int):
        self.config, std = config, LEVEL if config.std is None else config.std
        self.vectors = NoDecay(jax.random.normal(key, (config.length, width)) * std)

    def table(self, length, dtype):
        """Nothing is worked out, but the length is checked."""
        return self.config.check_length(length, dtype)

    def add(self, x, i, table=None):
        """The input x + p_i."""
        self.config.check_length(x.shape[0], x.dtype)
        return x + lookup(self.vectors[...], i, jnp.nan).astype(x.dtype)
