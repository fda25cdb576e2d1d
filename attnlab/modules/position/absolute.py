"""Position encodings added to the input: sines and cosines, and a learned table."""

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

# Initial standard deviation of learned vectors. It gives them the norm of sinusoidal ones: squares sum to D/2.
LEVEL = 0.5**0.5


@dataclass(frozen=True)
class Sinusoidal(Position):
    """Sines and cosines added to the input (Vaswani et al. 2017, section 3.5)."""

    def check(self, width, heads):
        """Raise ValueError if the width is odd."""
        if width % 2:
            raise ValueError(f"model.width={width} must be even for sinusoidal positions")

    def add(self, x, i, table=None):
        """Return x + p_i."""
        return x + sinusoidal(i, x.shape[1], x.dtype)


@dataclass(frozen=True)
class Learned(Position):
    """A learned vector for each of `length` positions, added to the input (Gehring et al. 2017, section 3.1).

    A longer sequence raises ValueError. In a traced loop, a position beyond the end yields NaN.
    """

    length: int = 512
    """Number of positions."""
    std: float | None = None
    """Standard deviation of the initial vectors, which are normal.

    None: √½, which gives them the norm of sines and cosines. With unscaled embeddings use 0.02 (Devlin et al. 2019).
    """
    inductive = False
    data_driven = True
    parameter_efficient = False

    def __post_init__(self):
        check_counts(length=self.length)
        if self.std is not None and not 0 < self.std < float("inf"):
            raise ValueError(f"std={self.std} must be a finite number above 0, or none")

    def max_length(self, dtype):
        """Return the length of the table."""
        return self.length

    def create(self, key, width, heads, layers=1, causal=False):
        """Create the table."""
        return LearnedTable(key, self, width)


class LearnedTable(PositionEncoding, nnx.Module):
    """The table of `Learned`, [length, D]."""

    def __init__(self, key: PRNGKeyArray, config: Learned, width: int):
        self.config, std = config, LEVEL if config.std is None else config.std
        self.vectors = NoDecay(jax.random.normal(key, (config.length, width)) * std)

    def table(self, length, dtype):
        """Check the length. There is nothing to compute."""
        return self.config.check_length(length, dtype)

    def add(self, x, i, table=None):
        """Return x + p_i."""
        self.config.check_length(x.shape[0], x.dtype)
        return x + lookup(self.vectors[...], i, jnp.nan).astype(x.dtype)
