"""Position encodings of image patches, read row by row. Half of each vector encodes the row, half the column."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import jax
import jax.numpy as jnp
from flax import nnx
from jaxtyping import PRNGKeyArray

from attnlab.modules.dense import fold_key
from attnlab.modules.parameter import NoDecay
from attnlab.modules.position.absolute import LEVEL
from attnlab.modules.position.base import Position, PositionEncoding
from attnlab.modules.position.rotary import even_heads
from attnlab.ops.counts import check_counts, check_positive
from attnlab.ops.lookup import lookup
from attnlab.ops.position import grid, rotary_2d, sinusoidal_2d


@dataclass(frozen=True)
class Sinusoidal2D(Position):
    """Sines and cosines of row and column in a grid of `columns` and `rows`, added to the input (Carion et al. 2020).

    The first half of a vector encodes the row, the second half the column. DETR's mask of padding has no counterpart
    here. The encoding of a plain ViT (Beyer et al. 2022) uses other frequencies and is not provided.
    """

    columns: int = 32
    """Number of columns of the grid."""
    rows: int = 32
    """Number of rows of the grid. Unused if `normalised` is False."""
    normalised: bool = True
    """True: count rows and columns from 1, divide by their number and multiply by 2π, as in DETR's code.

    Images of every size then span the same range. False: count both from 0, in units of the grid.
    """
    missing_values: ClassVar[dict] = {"normalised": False}

    def __post_init__(self):
        check_counts(columns=self.columns, rows=self.rows)

    def check(self, width, heads):
        """Raise ValueError if the width is not divisible by 4."""
        if width % 4:
            raise ValueError(f"model.width={width} must be divisible by 4 for sinusoidal-2d positions")

    def add(self, x, i, table=None):
        """Return x + p_i."""
        rows = self.rows if self.normalised else None
        return x + sinusoidal_2d(i, x.shape[1], self.columns, x.dtype, rows)


@dataclass(frozen=True)
class Learned2D(Position):
    """A learned vector for each row and each column, concatenated and added (Dosovitskiy et al. 2021, D.4).

    A sequence longer than rows · columns raises ValueError. In a traced loop, a position beyond the end yields NaN.
    """

    columns: int = 32
    """Number of columns of the grid."""
    rows: int = 32
    """Number of rows of the grid."""
    inductive = False
    data_driven = True
    parameter_efficient = False

    def __post_init__(self):
        check_counts(columns=self.columns, rows=self.rows)

    def check(self, width, heads):
        """Raise ValueError if the width is odd."""
        if width % 2:
            raise ValueError(f"model.width={width} must be even for learned-2d positions")

    def max_length(self, dtype):
        """Return rows · columns."""
        return self.rows * self.columns

    def create(self, key, width, heads, layers=1, causal=False):
        """Create the two tables."""
        return LearnedGrid(key, self, width)


class LearnedGrid(PositionEncoding, nnx.Module):
    """The tables of `Learned2D`, [rows, D/2] and [columns, D/2]."""

    def __init__(self, key: PRNGKeyArray, config: Learned2D, width: int):
        self.config = config
        draw = lambda name, count: jax.random.normal(fold_key(key, name), (count, width // 2)) * LEVEL
        self.rows, self.columns = NoDecay(draw("rows", config.rows)), NoDecay(draw("columns", config.columns))

    def table(self, length, dtype):
        """Check the length. There is nothing to compute."""
        return self.config.check_length(length, dtype)

    def add(self, x, i, table=None):
        """Return x + p_i."""
        self.config.check_length(x.shape[0], x.dtype)
        row, column = grid(i, self.config.columns)
        halves = lookup(self.rows[...], row, jnp.nan), lookup(self.columns[...], column, jnp.nan)
        return x + jnp.concatenate(halves, axis=1).astype(x.dtype)


@dataclass(frozen=True)
class Rotary2D(Position):
    """Rotary positions in a grid: half of each head rotates by the row, half by the column, interleaved."""

    columns: int = 32
    """Number of columns of the grid."""
    base: float = 10000.0
    """Base of the frequencies."""
    rotary = True
    rotation_size = 4

    def __post_init__(self):
        check_counts(columns=self.columns)
        check_positive(base=self.base)

    def check(self, width, heads):
        """Raise ValueError if the width of a head is not divisible by 4."""
        even_heads(width, heads, "rotary-2d", by=4)

    def rotate(self, q, k, i, j):
        """Return q and k rotated by their positions."""
        return rotary_2d(q, i, self.columns, self.base), rotary_2d(k, j, self.columns, self.base)
